"""Track where the elements of a tensor come from through Reshapes and Transposes.

An axis is a list of parts, slowest first. A part takes ``size`` steps of ``stride`` along one axis
of the source; the parts of one source axis together cover it. For example, a Reshape of rows of 6
into 3 pairs gives the parts (stride 2, size 3) and (stride 1, size 2). A layout describes any chain
of such operators, however it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.opset import RESHAPES
from smelt.ir.same_shape import Dim, same_dim
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.tensors.stack import dims_of


@dataclass(frozen=True)
class AxisPart:
    """``size`` steps of ``stride`` along ``axis`` of the source."""

    axis: int
    stride: int
    size: Dim


AxisParts: TypeAlias = tuple[AxisPart, ...]
Layout: TypeAlias = tuple[AxisParts, ...]

MOVES = (*sorted(RESHAPES), "Transpose", "SpaceToDepth", "DepthToSpace")
"""Operators whose effect on a layout ``layout_after`` computes."""


def source_layout(dims: Sequence[Dim]) -> Layout:
    """Return the layout of the source itself: one part for each axis, none for an axis of size
    1."""
    return tuple(() if dim == 1 else (AxisPart(axis, 1, dim),) for axis, dim in enumerate(dims))


def layout_after(layout: Layout, node: ir.Node, version: int) -> Layout | None:
    """Return the layout after ``node``, an operator of MOVES; None if sizes are unknown."""
    if node.op_type == "Transpose":
        perm = permutation(node)
        return None if perm is None else tuple(layout[axis] for axis in perm)
    if node.op_type in RESHAPES:
        dims = dims_of(node.outputs[0])
        return None if dims is None else reshape(layout, dims)
    block = opset.attribute(node, "blocksize", version)
    blocks_first = opset.attribute(node, "mode", version) in (None, "DCR")
    if node.op_type == "SpaceToDepth":
        return _space_to_depth(layout, block, blocks_first)
    return _depth_to_space(layout, block, blocks_first)


def reshape(layout: Layout, dims: Sequence[Dim]) -> Layout | None:
    """Return the parts regrouped into axes of ``dims``; None if an axis would cut through a
    part.

    Axes are filled from the front and from the back, so that one unknown dim can take the rest:
    parts of sizes 2, N, 3 and the dims [2, ?, 3] leave N for the middle.
    """
    parts: AxisParts = tuple(part for axis in layout for part in axis)
    front: list[AxisParts] = []
    back: list[AxisParts] = []
    left, right = 0, len(dims)
    while left < right:
        cut = split_front(parts, dims[left])
        if cut is None:
            break
        axis_parts, parts = cut
        front.append(merged_parts(axis_parts))
        left += 1
    while left < right:
        cut = split_front(parts, dims[right - 1], last=True)
        if cut is None:
            break
        axis_parts, parts = cut
        back.append(merged_parts(axis_parts))
        right -= 1
    if right - left > 1 or (left == right and parts):
        return None
    if right - left == 1 and isinstance(dims[left], int):
        return None
    middle = [merged_parts(parts)] if left < right else []
    return (*front, *middle, *reversed(back))


def split_front(
    parts: AxisParts, dim: Dim, *, last: bool = False
) -> tuple[AxisParts, AxisParts] | None:
    """Split ``dim`` elements off the front of ``parts``, or off the end with ``last``.

    Returns ``(parts split off, remaining parts)``. A part may be cut in two. None if the cut is not
    on a boundary of parts or their factors.
    """
    split_off: list[AxisPart] = []
    remaining = list(parts)
    count: Dim = 1
    while not same_dim(count, dim):
        if not remaining:
            return None
        part = remaining.pop(-1 if last else 0)
        if isinstance(dim, int):
            size = part.size
            if not isinstance(size, int) or not isinstance(count, int) or 0 in (dim, size):
                return None
            needed_size = dim // count
            if size > needed_size and size % needed_size == 0:
                part, remainder = _split_part(part, needed_size, size // needed_size, last)
                remaining.insert(len(remaining) if last else 0, remainder)
            elif needed_size % size:
                return None
        split_off.insert(0 if last else len(split_off), part)
        count = part.size * count
    return tuple(split_off), tuple(remaining)


def _split_part(
    part: AxisPart, taken_size: int, rest_size: int, last: bool
) -> tuple[AxisPart, AxisPart]:
    """Split ``part`` in two and return the part split off, then the remaining part.

    They have ``taken_size`` and ``rest_size`` steps. The part split off has the outer, longer
    steps, or with ``last`` the inner ones.
    """
    outer, inner = (rest_size, taken_size) if last else (taken_size, rest_size)
    slow = AxisPart(part.axis, part.stride * inner, outer)
    fast = AxisPart(part.axis, part.stride, inner)
    return (fast, slow) if last else (slow, fast)


def merged_parts(parts: AxisParts) -> AxisParts:
    """Join neighbouring parts that continue along the same axis.

    (stride 2, size 3) and (stride 1, size 2) become (stride 1, size 6). Layouts that say the same
    are then equal.
    """
    merged: list[AxisPart] = []
    for part in parts:
        last = merged[-1] if merged else None
        if last is None or last.axis != part.axis or not isinstance(part.size, int):
            merged.append(part)
        elif last.stride == part.stride * part.size:
            merged[-1] = AxisPart(part.axis, part.stride, last.size * part.size)
        else:
            merged.append(part)
    return tuple(merged)


def _space_to_depth(layout: Layout, block: int, blocks_first: bool) -> Layout | None:
    """Return the layout after SpaceToDepth.

    Channels become (rows, columns, old channels), or (old channels, rows, columns) if not
    ``blocks_first``.
    """
    batch, channels, *spatial = layout
    rows, columns = (split_front(axis, block, last=True) for axis in spatial)
    if rows is None or columns is None:
        return None
    blocks = (*rows[0], *columns[0])
    depth = (*blocks, *channels) if blocks_first else (*channels, *blocks)
    return batch, merged_parts(depth), rows[1], columns[1]


def _depth_to_space(layout: Layout, block: int, blocks_first: bool) -> Layout | None:
    """Return the layout after DepthToSpace, the inverse of ``_space_to_depth``; None if the parts
    do not split so.
    """
    batch, channels, height, width = layout
    first = split_front(channels, block, last=not blocks_first)
    second = split_front(first[1], block, last=not blocks_first) if first is not None else None
    if first is None or second is None:
        return None
    rows, columns = (first[0], second[0]) if blocks_first else (second[0], first[0])
    return batch, second[1], merged_parts((*height, *rows)), merged_parts((*width, *columns))
