"""Loops that collect a result of each round, as while_loop with a tensor for each result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.mlpackage.program import Block, Element
from smelt.targets.coreml.blocks import block_results, named_inputs, refuse_changed, renamed
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.writer import Refused, Val

MOST_ROUNDS = 128
"""A loop of more rounds is not unrolled."""
MOST_NODES = 10_000
"""Nor is one whose rounds have more nodes together, if while_loop can compute it."""


def is_unrolled(graph: ir.Graph, count: int, states: tuple[int, int]) -> bool:
    """True if a loop of ``count`` rounds of ``graph`` is written as one copy for each.

    ``states`` are the indexes of the first state among the inputs and the outputs of ``graph``.
    """
    if count > MOST_ROUNDS:
        return False
    nodes = sum(1 for _ in scope.nodes_below(graph))
    return nodes * count <= MOST_NODES or not _is_uniform(graph, *states)


def _is_uniform(graph: ir.Graph, first: int, first_result: int) -> bool:
    """True if all results have fixed shapes, states keep theirs, and no result is bool."""
    results = graph.outputs[first_result:]
    if any(each.shape is None or not each.shape.is_static() for each in results):
        return False
    pairs = zip(graph.inputs[first:], results, strict=False)
    return all(before.shape == after.shape for before, after in pairs) and not any(
        each.dtype == ir.DataType.BOOL for each in results
    )


def counted_loop(
    c: Call,
    count: Val | int,
    carried: Sequence[Val],
    results: Sequence[ir.Value],
    round_of: Callable[[Val, list[Val]], list[Val]],
    backwards: Sequence[int],
) -> list[Val]:
    """Write while_loop of ``count`` rounds; return the last states, and the results of all rounds.

    ``round_of`` writes the round with a number and states, and returns the new states and the rows
    for ``results``. The loop carries a tensor of zeros for each result, and writes a row of it in
    each round, from the last one on for results that ``backwards`` marks.
    """
    last = count - 1 if isinstance(count, int) else c.op("sub", count, 1)
    tables = [_zeros(c, value, count) for value in results]
    start = c.op("add", c.w.constant(np.int32(0)), 0)
    variables = [start, *carried, *tables]
    first, second = (renamed(c, variables, label) for label in ("condition_in", "body_in"))
    with c.w.block() as tests:
        below = block_results(c, [c.op("less", first[0], count, element=Element.BOOL)])
    with c.w.block() as steps:
        number, states = second[0], second[1 : 1 + len(carried)]
        found = round_of(number, states)
        refuse_changed(carried, found[: len(carried)])
        back = c.op("sub", last, number) if any(backwards) else number
        written = [
            _with_row(c, table, back if backward else number, row)
            for table, backward, row in zip(
                second[1 + len(carried) :], backwards, found[len(carried) :], strict=True
            )
        ]
        names = block_results(c, [c.op("add", number, 1), *found[: len(carried)], *written])
    blocks = [Block(tests, below, named_inputs(first)), Block(steps, names, named_inputs(second))]
    kinds = [(each.element, each.dims) for each in variables]
    label = c.node.outputs[0].name or "loop"
    return c.w.ops("while_loop", kinds, name=label, blocks=blocks, loop_vars=variables)[1:]


def _zeros(c: Call, value: ir.Value, count: Val | int) -> Val:
    """Return zeros for ``count`` rows like ``value``, a result of each round.

    Raises Refused for bools, which scatter of MIL lacks, and for sizes that only the body computes.
    """
    kind, dims = c.element(value), c.dims(value)
    if kind == Element.BOOL:
        raise Refused("the result of a round is bool, and the rounds are many", "cast it to int32")
    assert value.shape is not None
    shape = c.vector([count, *(_size_outside(c, each) for each in value.shape)])
    length = count if isinstance(count, int) else None
    zero = np.asarray(0, kind.numpy)
    return c.w.op("fill", kind, (length, *dims), shape=shape, value=zero)


def _size_outside(c: Call, size: int | ir.SymbolicDim) -> int | Val:
    """Return the size of a value in the body: a number, or a size that an input of the loop has."""
    if isinstance(size, int):
        return size
    for index, value in enumerate(c.node.inputs):
        if value is not None and value.shape is not None and size.value is not None:
            for axis, dim in enumerate(value.shape):
                if dim == size:
                    return c.size(c.x(index), axis)
    raise Refused("the result of a round has a size that no input has, and the rounds are many")


def _with_row(c: Call, table: Val, number: Val, row: Val) -> Val:
    """Return ``table`` with ``row`` at ``number``."""
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    return c.w.op(
        "scatter",
        table.element,
        table.dims,
        data=table,
        indices=c.expand(number, [0]),
        updates=c.expand(row, [0]),
        axis=0,
        mode="update",
        **more,
    )
