"""Find which elements of a head a rotary embedding pairs, and the angle of each pair.

A head x0 ... x5 is paired by halves, as (x0, x3), (x1, x4), (x2, x5), or interleaved, as (x0, x1),
(x2, x3), (x4, x5). Models repeat each angle for both elements of its pair.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.rows import Cut
from smelt.ir.rule import Match
from smelt.ir.same_shape import same_dim
from smelt.ir.slices import cuts_of
from smelt.ir.walk import producer_of
from smelt.operators.elementwise import UNARY

NOTHING: Mapping[int, object] = {}
"""No cuts along other axes than the last."""

DEEP = 16
"""Limit of operators between the angles and their repetition; models have about five."""


def numbers_of(
    value: ir.Value,
    source: ir.Value,
    constants: Constants,
    other_cuts: Mapping[int, object] = NOTHING,
) -> range | None:
    """Return the indices along the last dim of ``source`` that ``value`` holds; None if unknown.

    ``other_cuts`` lists the cuts along other axes that ``value`` must have.
    """
    if source.shape is None or value.shape is None or not isinstance(source.shape[-1], int):
        return None
    size, last = source.shape[-1], len(source.shape) - 1
    if value is source:
        return None if other_cuts else range(size)
    node = producer_of(value, "Slice", "Split")
    if node is None or node.inputs[0] is not source:
        return None
    if node.op_type == "Slice":
        cuts = cuts_of(node, constants)
        if cuts is None or _cuts_of_other_axes(cuts, source.shape) != other_cuts:
            return None
        return range(size)[slice(*cuts[last])] if last in cuts else range(size)
    widths = [part.shape[-1] if part.shape is not None else None for part in node.outputs]
    sizes = [width for width in widths if isinstance(width, int)]
    if (
        other_cuts
        or node.attributes.get_int("axis", 0) not in (-1, last)
        or len(sizes) < len(widths)
    ):
        return None
    start = sum(sizes[: value.index() or 0])
    return range(start, start + sizes[value.index() or 0])


def _cuts_of_other_axes(cuts: Mapping[int, Cut], shape: ir.Shape) -> dict[int, object]:
    """Return the cuts along all axes but the last, normalized so that equal cuts compare equal."""
    dims = enumerate(shape.dims[:-1])
    return {
        axis: range(dim)[slice(*cuts[axis])] if isinstance(dim, int) else cuts[axis]
        for axis, dim in dims
        if axis in cuts
    }


def is_interleaved(
    x: ir.Value, first: ir.Value, second: ir.Value, source: ir.Value, constants: Constants
) -> bool | None:
    """Return False if ``first`` and ``second`` hold the pairs of ``x`` by halves, True if
    interleaved.

    None if they do not hold pairs. ``x`` is ``source`` or a slice of it.
    """
    node = producer_of(x, "Slice") if x is not source else None
    cuts = cuts_of(node, constants) if node is not None else None
    other_cuts = (
        _cuts_of_other_axes(cuts, source.shape) if cuts and source.shape is not None else NOTHING
    )
    indices = numbers_of(x, source, constants, other_cuts)
    pair = [numbers_of(part, source, constants, other_cuts) for part in (first, second)]
    if indices is None or len(indices) % 2 or not indices:
        return None
    half = len(indices) // 2
    if pair == [indices[:half], indices[half:]]:
        return False
    if pair == [indices[::2], indices[1::2]]:
        return True
    return None


def angles_of_pairs(
    value: ir.Value, interleaved: bool, m: Match, b: Builder, depth: int = 0
) -> ir.Value | None:
    """Return one angle for each pair if ``value`` is proved to repeat it for both elements, else
    None.

    The function follows elementwise operators back to the place where the angles are repeated, and
    builds the same operators on the angles before the repetition.
    """
    array = m.array(value, None)
    if array is not None:
        angles_of_constant = _half_of(array, interleaved)
        return None if angles_of_constant is None else b.constant(angles_of_constant)
    unrepeated = _repeated_twice(value, b) if interleaved else _concat_of_itself(value)
    if unrepeated is not None:
        return unrepeated
    node = producer_of(value, "Unsqueeze", "Mul", "Cast", "Gather", "Reshape", *UNARY)
    source = node.inputs[0] if node is not None else None
    if node is None or source is None or source.shape is None or depth == DEEP:
        return None
    if not _keeps_last(node, len(source.shape), m):
        return None
    if node.op_type == "Mul" and m.scalar(source) is not None:
        angles = node.inputs[1]
        source_angles = (
            angles_of_pairs(angles, interleaved, m, b, depth + 1) if angles is not None else None
        )
        return b.like(node, source, source_angles) if source_angles is not None else None
    source_angles = angles_of_pairs(source, interleaved, m, b, depth + 1)
    if source_angles is None:
        return None
    if node.op_type == "Reshape":
        *lead, last = m.constants.ints(node.inputs[1]) or (0,)
        return b.like(node, source_angles, b.const_i64([*lead, last // 2]))
    return b.like(node, source_angles, *node.inputs[1:])


def _half_of(array: np.ndarray, interleaved: bool) -> np.ndarray | None:
    """Return the first element of each pair of a constant, None if a second element differs."""
    if not array.ndim or array.shape[-1] % 2 or not array.size:
        return None
    half = array.shape[-1] // 2
    if interleaved:
        firsts, seconds = array[..., ::2], array[..., 1::2]
    else:
        firsts, seconds = array[..., :half], array[..., half:]
    return firsts if (firsts == seconds).all() else None


def _keeps_last(node: ir.Node, rank: int, m: Match) -> bool:
    """True if ``node`` computes its result element by element along the last dim of its operand."""
    if node.op_type == "Unsqueeze":
        axes = opset.axes_of(node, m.constants, index=1) or ()
        new_rank = rank + len(axes)
        return bool(axes) and new_rank - 1 not in {axis % new_rank for axis in axes}
    if node.op_type == "Gather":
        return rank >= 2 and node.attributes.get_int("axis", 0) % rank != rank - 1
    if node.op_type == "Reshape":
        rows = m.constants.ints(node.inputs[1]) or ()
        shapes = [value.shape for value in (*node.inputs[:1], *node.outputs) if value is not None]
        lasts = [shape[-1] for shape in shapes if shape is not None and len(shape)]
        return bool(rows) and lasts == [rows[-1], rows[-1]]
    if node.op_type == "Mul":
        return [m.scalar(operand) is not None for operand in node.inputs].count(True) == 1
    return True


def _concat_of_itself(value: ir.Value) -> ir.Value | None:
    """Return ``a`` if ``value`` is Concat(a, a) along the last axis, else None."""
    node = producer_of(value, "Concat")
    if node is None or len(node.inputs) != 2 or not is_along_last(node):
        return None
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


def _repeated_twice(value: ir.Value, b: Builder) -> ir.Value | None:
    """Return ``a`` if ``value`` has each element of ``a`` twice in a row along the last axis, else
    None.

    Exporters repeat by Expand or Concat along a new last axis, which a Reshape merges with the axis
    before it.
    """
    merge = producer_of(value, "Reshape")
    node = producer_of(merge.inputs[0], "Expand", "Concat") if merge is not None else None
    source = node.inputs[0] if node is not None else None
    if node is None or source is None or source.shape is None or value.shape is None:
        return None
    pairs = node.outputs[0].shape
    if pairs is None or len(pairs) != len(source.shape) or not _is_paired(pairs, value.shape):
        return None
    if source.shape[-1] != 1 or not all(map(same_dim, source.shape[:-1], pairs[:-1])):
        return None
    if node.op_type == "Concat" and set(node.inputs) != {source}:
        return None
    return b.op("Squeeze", source, b.const_i64([-1]))


def _is_paired(pairs: ir.Shape, merged: ir.Shape) -> bool:
    """True if the shapes are (..., D/2, 2) and (..., D)."""
    if len(pairs) != len(merged) + 1 or pairs[-1] != 2 or not isinstance(pairs[-2], int):
        return False
    return merged[-1] == 2 * pairs[-2] and all(map(same_dim, pairs[:-2], merged[:-1]))


def stacks_pairs(reshape: ir.Node, constants: Constants) -> bool:
    """True if ``reshape`` interleaves two values: ``stack([x, y], axis=-1).reshape(..., -1)``."""
    stack = producer_of(reshape.inputs[0], "Concat")
    shape, merged = (node.outputs[0].shape if node else None for node in (stack, reshape))
    if stack is None or shape is None or merged is None or not _is_paired(shape, merged):
        return False
    unsqueezes = [producer_of(value, "Unsqueeze") for value in stack.inputs]
    if len(unsqueezes) != 2 or not is_along_last(stack):
        return False
    return all(node is not None and is_of_last(node, constants) for node in unsqueezes)


def is_along_last(concat: ir.Node) -> bool:
    """True if a Concat joins along the last axis."""
    shape = concat.outputs[0].shape
    return shape is not None and concat.attributes.get_int("axis", 0) in (-1, len(shape) - 1)


def is_of_last(node: ir.Node, constants: Constants) -> bool:
    """True for an Unsqueeze that adds a last axis or a Squeeze that removes it."""
    longer_value = (
        node.outputs[0] if node.op_type == "Unsqueeze" else node.inputs[0]
    ) or ir.Value()
    last = len(longer_value.shape) - 1 if longer_value.shape is not None else -1
    return opset.axes_of(node, constants, index=1) in ((-1,), (last,))
