"""Recognize an interleaving: values that alternate along an axis.

    stack        a, b: [C, H] ─> stack of axis 1: [C, 2, H] ─> Reshape [2*C, H]
    transposed   a, b: [C, H] ─> Concat(0) ─> Reshape [2, C, H] ─> Transpose ─> Reshape [2*C, H]
    operator     a, b: [C, H] ─> ConcatInterleave(0): [2*C, H]

Element ``i`` of value ``j`` of ``n`` gets index ``i * n + j``.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.opset import RESHAPES
from smelt.ir.same_shape import Dim
from smelt.ir.walk import Walk, producer_of
from smelt.operators.concat_interleave import OPERATOR
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.tensors.stack import concat_axis, dims_of, merged_dims, same_dims, stack_of


@dataclass(frozen=True)
class Interleaving:
    """``values`` alternate along ``axis``."""

    values: tuple[ir.Value, ...]
    axis: int


def interleaving_of(
    value: ir.Value | None, constants: Constants, walk: Walk
) -> Interleaving | None:
    """Return the interleaving that computes ``value``; None if none is proved.

    The nodes that compute it are added to ``walk``.
    """
    if (operator := _by_operator(value, walk)) is not None:
        return operator
    reshape = producer_of(value, *RESHAPES)
    unmerged = reshape.inputs[0] if reshape is not None else None
    before, after = dims_of(unmerged), dims_of(value)
    if reshape is None or before is None or after is None:
        return None
    mark = walk.mark()
    walk.take([reshape])
    stack = stack_of(unmerged, constants, walk)
    if stack is None:
        interleaving = _transposed(unmerged, before, after, walk)
    else:
        axis = stack.axis - 1
        is_merged = axis >= 0 and same_dims(merged_dims(before, axis, axis + 1), after)
        interleaving = (
            Interleaving(stack.values, axis) if is_merged and len(stack.values) > 1 else None
        )
    if interleaving is None:
        walk.back(mark)
    return interleaving


def _by_operator(value: ir.Value | None, walk: Walk) -> Interleaving | None:
    """Return the interleaving of the ConcatInterleave that produces ``value``, else None."""
    node = value.producer() if value is not None else None
    dims = dims_of(value)
    if node is None or dims is None or node.op_identifier()[:2] != OPERATOR.key:
        return None
    values = tuple(operand for operand in node.inputs if operand is not None)
    if len(values) < max(2, len(node.inputs)):
        return None
    walk.take([node])
    return Interleaving(values, node.attributes["axis"].as_int() % len(dims))


def _transposed(
    unmerged: ir.Value | None, before: tuple[Dim, ...], after: tuple[Dim, ...], walk: Walk
) -> Interleaving | None:
    """Return the interleaving by Concat, Reshape, Transpose and Reshape, else None."""
    transpose = producer_of(unmerged, "Transpose")
    split = producer_of(transpose.inputs[0], *RESHAPES) if transpose is not None else None
    joined = split.inputs[0] if split is not None else None
    concat = producer_of(joined, "Concat")
    if transpose is None or split is None or concat is None:
        return None
    axis, perm = concat_axis(concat), permutation(transpose)
    values = tuple(operand for operand in concat.inputs if operand is not None)
    if axis is None or perm is None or len(values) < 2:
        return None
    swapped = list(range(len(before)))
    swapped[axis : axis + 2] = reversed(swapped[axis : axis + 2])
    if list(perm) != swapped or not same_dims(merged_dims(before, axis, axis + 1), after):
        return None
    first_dims = dims_of(values[0])
    if first_dims is None or not all(
        same_dims(first_dims, dims_of(operand) or ()) for operand in values[1:]
    ):
        return None
    stacked_dims = (*first_dims[:axis], len(values), *first_dims[axis:])
    if not same_dims(stacked_dims, dims_of(split.outputs[0]) or ()):
        return None
    walk.take([transpose, split, concat])
    return Interleaving(values, axis)
