"""Recognize a stack: values joined along a new axis.

    a ─> Unsqueeze(k) ─┐
    b ─> Unsqueeze(k) ─┴─> Concat(k) ─> stack

A Reshape that inserts one dim counts as an Unsqueeze. The position of the new axis decides, never
sizes that happen to be equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.ir.walk import Walk, producer_of


@dataclass(frozen=True)
class Stack:
    """``values`` of equal shapes, stacked along the new ``axis``."""

    values: tuple[ir.Value, ...]
    axis: int


def stack_of(value: ir.Value | None, constants: Constants, walk: Walk) -> Stack | None:
    """Return the stack that computes ``value``; None if there is none or a rank is unknown.

    The nodes that compute it are added to ``walk``.
    """
    node = producer_of(value, "Concat")
    if node is None or value is None or value.shape is None:
        return None
    axis = concat_axis(node)
    if axis is None:
        return None
    values: list[ir.Value] = []
    nodes = [node]
    for operand in node.inputs:
        producer = operand.producer() if operand is not None else None
        if producer is None or not _inserts_one_dim(producer, axis, constants):
            return None
        source = producer.inputs[0]
        assert source is not None
        values.append(source)
        nodes.append(producer)
    if not values:
        return None
    walk.take(nodes)
    return Stack(tuple(values), axis)


def concat_axis(node: ir.Node) -> int | None:
    """Return the axis of a Concat, counted from 0; None if the rank is unknown."""
    shape = node.outputs[0].shape
    attribute = node.attributes.get("axis")
    if shape is None or attribute is None or attribute.is_ref():
        return None
    axis = attribute.as_int()
    return axis % len(shape) if -len(shape) <= axis < len(shape) else None


def merged_dims(dims: tuple[Dim, ...], axis: int, last: int) -> tuple[Dim, ...]:
    """Return ``dims`` with the axes from ``axis`` to ``last`` merged."""
    return (*dims[:axis], dim_product(dims[axis : last + 1]), *dims[last + 1 :])


def same_dims(a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
    """True only if both are proved equal, dim by dim."""
    return len(a) == len(b) and all(map(same_dim, a, b))


def dims_of(value: ir.Value | None) -> tuple[Dim, ...] | None:
    """Return the dims of ``value``; None if the rank is unknown."""
    return None if value is None or value.shape is None else tuple(value.shape.dims)


def _inserts_one_dim(node: ir.Node, axis: int, constants: Constants) -> bool:
    """True if ``node`` inserts one dim of size 1 at ``axis`` and does nothing else."""
    if node.domain or node.op_type not in ("Reshape", "Unsqueeze"):
        return False
    after = dims_of(node.outputs[0])
    if after is None or not is_known(node):
        return False
    if node.op_type == "Unsqueeze":
        axes = opset.axes_of(node, constants)
        return axes is not None and len(axes) == 1 and axes[0] % len(after) == axis
    before = dims_of(node.inputs[0])
    return before is not None and same_dims((*before[:axis], 1, *before[axis:]), after)
