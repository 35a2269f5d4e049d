"""Blocks of MIL: the bodies of branches and loops, their inputs and their results."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.mlpackage.program import Named, TensorType
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.emission import write_node
from smelt.targets.coreml.facts import Scope
from smelt.targets.coreml.writer import Refused, Val


def write_body(c: Call, graph: ir.Graph, inputs: Sequence[Val]) -> list[Val]:
    """Write the nodes of an inner graph with its inputs bound, and return its outputs."""
    outer = c.facts.scope
    c.facts.scope = Scope(outer=outer)
    try:
        for value, given in zip(graph.inputs, inputs, strict=True):
            c.facts.scope.add(value, given)
        for node in graph:
            if len(node.outputs) != 1 or tensor_of(node.outputs[0]) is None:
                write_node(c.facts, node)
        return [c.read(value, c.element(value)) for value in graph.outputs]
    finally:
        c.facts.scope = outer


def block_results(c: Call, outputs: Sequence[Val]) -> list[str]:
    """Return names for the outputs of a block, each of a value that the block itself writes."""
    names = []
    for value in outputs:
        same = c.w.op("identity", value.element, value.dims, x=value)
        names.append(same.name)
    return names


def renamed(c: Call, values: Sequence[Val], label: str) -> list[Val]:
    """Return values with new names, the inputs of a block."""
    return [Val(c.w.new_name(label), each.element, each.dims) for each in values]


def refuse_changed(before: Sequence[Val], after: Sequence[Val]) -> None:
    """Raise Refused if a carried value changes its shape or element type."""
    for old, new in zip(before, after, strict=True):
        if old.dims != new.dims or old.element != new.element:
            raise Refused("a carried value changes its shape or type")


def named_inputs(values: Sequence[Val]) -> list[Named]:
    """Return values as the inputs of a block."""
    return [Named(each.name, TensorType(each.element, each.dims)) for each in values]


def stacked(c: Call, values: Sequence[Val], axis: int) -> Val:
    """Return values of one shape as one with a new dim at ``axis``."""
    if len({value.dims for value in values}) > 1:
        raise Refused("its rounds give results of different shapes")
    parts = [c.expand(value, [axis]) for value in values]
    if len(parts) == 1:
        return parts[0]
    dims = list(parts[0].dims)
    dims[axis] = len(parts)
    kind = parts[0].element
    return c.w.op("concat", kind, tuple(dims), values=parts, axis=axis, interleave=False)
