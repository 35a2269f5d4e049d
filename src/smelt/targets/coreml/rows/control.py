"""If and Loop: cond, while_loop, or one copy of the body for each of a constant number of
rounds."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Block, Element
from smelt.targets.coreml.blocks import (
    block_results,
    named_inputs,
    refuse_changed,
    renamed,
    stacked,
    write_body,
)
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.collected_results import counted_loop, is_unrolled
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val


def _scalar(c: Call, value: Val) -> Val:
    """Return a tensor of one element as a scalar."""
    return c.squeeze(value, range(value.rank)) if value.rank else value


@writes("If")
def branch(c: Call) -> None:
    """Write cond, whose branches give results of the same types."""
    condition = _scalar(c, c.x(0, Element.BOOL))
    blocks, kinds = [], []
    for name in ("then_branch", "else_branch"):
        graph = c.node.attributes[name].as_graph()
        with c.w.block() as operations:
            results = write_body(c, graph, [])
            names = block_results(c, results)
        blocks.append(Block(operations, names))
        kinds.append([(each.element, each.dims) for each in results])
    if kinds[0] != kinds[1]:
        raise Refused("its branches give results of different shapes")
    label = c.node.outputs[0].name or "cond"
    c.done(*c.w.ops("cond", kinds[0], name=label, blocks=blocks, pred=condition))


@writes("Loop")
def loop(c: Call) -> None:
    """Unroll a loop whose number of iterations is constant and small, else write while_loop."""
    graph = c.node.attributes["body"].as_graph()
    count = c.ints(0)
    start = c.array(1)
    starts = not c.has(1) or (start is not None and bool(start.reshape(-1)[0]))
    if count is None or not starts or not _never_stops(c, graph) or count[0] <= 0:
        _while(c, graph)
    elif is_unrolled(graph, count[0], (2, 1)):
        _unroll_loop(c, graph, count[0])
    else:
        _count_rounds(c, graph, count[0])


def _count_rounds(c: Call, graph: ir.Graph, count: int) -> None:
    """Write while_loop of ``count`` rounds, which collects a result of each."""
    carried = _initial(c, 2)

    def round_of(number: Val, states: list[Val]) -> list[Val]:
        """Write a round, whose condition is True."""
        inputs = [number, c.w.constant(np.bool_(True)), *states]
        return write_body(c, graph, inputs)[1:]

    results = graph.outputs[1 + len(carried) :]
    c.done(*counted_loop(c, count, carried, results, round_of, [0] * len(results)))


def _never_stops(c: Call, graph: ir.Graph) -> bool:
    """True if the condition that the body of a Loop returns is always True.

    It is a constant, or the condition that the body gets.
    """
    condition = graph.outputs[0]
    while (node := condition.producer()) is not None and node.op_type == "Identity":
        source = node.inputs[0]
        assert source is not None
        condition = source
    if condition is graph.inputs[1]:
        return True
    array = c.facts.constants.get(condition)
    return array is not None and bool(array.reshape(-1)[0])


def _initial(c: Call, first: int) -> list[Val]:
    """Return the initial values of the loop-carried variables: the inputs from ``first`` on."""
    return [c.x(index) for index in range(first, len(c.node.inputs))]


def _unroll_loop(c: Call, graph: ir.Graph, count: int) -> None:
    """Write the body of a Loop ``count`` times, and stack the outputs that it collects."""
    carried = _initial(c, 2)
    rows: list[list[Val]] = []
    for number in range(count):
        inputs = [c.w.constant(np.int32(number)), c.w.constant(np.bool_(True)), *carried]
        results = write_body(c, graph, inputs)[1:]
        carried, row = results[: len(carried)], results[len(carried) :]
        rows.append(row)
    c.done(*carried, *(stacked(c, each, 0) for each in zip(*rows, strict=True)))


def _while(c: Call, graph: ir.Graph) -> None:
    """Write while_loop over a counter, the condition and the loop-carried values.

    Raises Refused for values that change their shape, and for outputs that are collected.
    """
    carried = _initial(c, 2)
    if len(c.node.outputs) > len(carried):
        raise Refused("it collects a result of each round, and their number is open")
    count = _scalar(c, c.x(0, Element.INT32)) if c.has(0) else None
    condition = _scalar(c, c.x(1, Element.BOOL)) if c.has(1) else c.w.constant(np.bool_(True))
    start = c.op("add", c.w.constant(np.int32(0)), 0)
    variables = [start, c.op("logical_and", condition, True), *carried]

    first = renamed(c, variables, "condition_in")
    with c.w.block() as tests:
        test = first[1]
        if count is not None:
            below = c.op("less", first[0], count, element=Element.BOOL)
            test = c.op("logical_and", below, test)
        outcome = block_results(c, [test])
    second = renamed(c, variables, "body_in")
    with c.w.block() as steps:
        found = write_body(c, graph, [second[0], second[1], *second[2:]])
        following = [c.op("add", second[0], 1), _scalar(c, found[0]), *found[1:]]
        names = block_results(c, following)
    refuse_changed(carried, found[1:])
    blocks = [Block(tests, outcome, named_inputs(first)), Block(steps, names, named_inputs(second))]
    kinds = [(each.element, each.dims) for each in variables]
    label = c.node.outputs[0].name or "loop"
    finals = c.w.ops("while_loop", kinds, name=label, blocks=blocks, loop_vars=variables)
    c.done(*finals[2:])
