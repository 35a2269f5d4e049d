"""Recognize space to batch before a convolution and batch to space behind it, in any form.

Space to batch with block ``b`` cuts an image into ``b`` images of every b-th row, and stacks them
along the batch. Exporters write it with Reshape and Transpose, or SpaceToDepth, in many ways; the
axis parts (``axis_parts.py``) of all forms are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.walk import Walk, producer_of
from smelt.passes.convolution.axis_parts import (
    MOVES,
    AxisPart,
    AxisParts,
    Layout,
    layout_after,
    source_layout,
)
from smelt.passes.tensors.stack import dims_of

MOST_NODES = 8
"""The most operators that the search follows on each side of the convolution."""


@dataclass(frozen=True)
class Entry:
    """The space to batch of ``source`` before a convolution.

    The convolution sees axis ``order[i]`` of ``source`` as axis ``i``. ``blocks``: the block of
    each spatial axis. ``batch``: the batch axis that the convolution sees, as parts of the axes
    that it would have without space to batch. ``size``: the batch size before.
    """

    source: ir.Value
    order: tuple[int, ...]
    blocks: tuple[int, ...]
    batch: AxisParts
    size: Dim


@dataclass(frozen=True)
class Exit:
    """The batch to space behind a convolution, which ends in ``result``.

    Axis ``i`` of ``result`` is axis ``order[i]`` of the dilated convolution that is to replace the
    chain. ``sizes``: the spatial sizes of that convolution's result, None where unknown.
    """

    result: ir.Value
    order: tuple[int, ...]
    sizes: tuple[int | None, ...]


def entry_of(walk: Walk, version: int) -> Entry | None:
    """Return the space to batch that feeds the convolution at the root of ``walk``, else None.

    It begins right behind a Pad if possible, else as near to the convolution as possible. Its nodes
    are added to ``walk``.
    """
    chain: list[ir.Node] = []
    value = walk.root.inputs[0]
    while len(chain) < MOST_NODES and (node := producer_of(value, *MOVES)) is not None:
        chain.insert(0, node)
        value = node.inputs[0]
    starts = list(reversed(range(len(chain))))
    if chain and producer_of(value, "Pad") is not None:
        starts.insert(0, 0)
    for start in starts:
        entry = _entry(chain[start:], version)
        if entry is not None:
            walk.take(chain[start:])
            return entry
    return None


def _entry(nodes: list[ir.Node], version: int) -> Entry | None:
    """Return the Entry that the chain ``nodes`` computes; None if it is no space to batch."""
    source = nodes[0].inputs[0]
    dims = dims_of(source)
    if source is None or dims is None:
        return None
    layout: Layout | None = source_layout(dims)
    for node in nodes:
        layout = layout_after(layout, node, version) if layout is not None else None
    if layout is None or len(layout) != len(dims) or len(dims) < 3:
        return None
    roles = _axes_and_blocks(layout, dims)
    if roles is None:
        return None
    order, blocks = roles
    if max(blocks) == 1:
        return None
    batch = tuple(AxisPart(order.index(part.axis), 1, part.size) for part in layout[0])
    return Entry(source, tuple(order), tuple(blocks), batch, dims[order[0]])


def _axes_and_blocks(layout: Layout, dims: Sequence[Dim]) -> tuple[list[int], list[int]] | None:
    """Return the source axis of each axis of the convolution, and the blocks of the spatial axes.

    None if the layout is not that of space to batch: a spatial axis is every b-th element of one
    source axis, and the batch consists of the old batch and the b starts.
    """
    source_axes: dict[int, int] = {}
    blocks = [1] * (len(dims) - 2)
    for axis, parts in enumerate(layout[1:], 1):
        if not parts:
            continue
        part = parts[0]
        if len(parts) > 1 or (axis == 1 and part.stride > 1):
            return None
        if not same_dim(part.size * part.stride, dims[part.axis]):
            return None
        source_axes[axis] = part.axis
        if axis > 1:
            blocks[axis - 2] = part.stride
    for part in layout[0]:
        axis = next((axis for axis, source in source_axes.items() if source == part.axis), 0)
        full_size: Dim = 1
        if axis == 0:
            full_size = dims[part.axis]
        elif axis > 1:
            full_size = blocks[axis - 2]
        if part.stride > 1 or not same_dim(part.size, full_size):
            return None
        if source_axes.setdefault(axis, part.axis) != part.axis:
            return None
    # Axes of size 1 have no parts, so their order does not matter.
    remaining = iter(axis for axis in range(len(dims)) if axis not in source_axes.values())
    for axis in range(len(dims)):
        if axis not in source_axes:
            source_axes[axis] = next(remaining)
    return [source_axes[axis] for axis in range(len(dims))], blocks


def exit_of(walk: Walk, entry: Entry, version: int) -> Exit | None:
    """Return the batch to space behind the root of ``walk`` that undoes ``entry``, else None.

    It starts from the layout that the convolution's result has in terms of the dilated one's, and
    follows the nodes behind until each axis is whole again. They are added to ``walk``.
    """
    value = walk.root.outputs[0]
    dims = dims_of(value)
    if dims is None:
        return None
    full_sizes: list[Dim] = [entry.size, dims[1]]
    start = [entry.batch, source_layout(dims[:2])[1]]
    for axis, (block, dim) in enumerate(zip(entry.blocks, dims[2:], strict=True), 2):
        if block > 1 and not isinstance(dim, int):
            return None
        full_sizes.append(dim * block)
        start.append(() if dim == 1 else (AxisPart(axis, block, dim),))
    layout: Layout = tuple(start)  # of the convolution's result
    for _ in range(MOST_NODES):
        node = walk.down(MOVES)
        if node is None:
            return None
        moved = layout_after(layout, node, version)
        if moved is None:
            return None
        layout = moved
        order = _order_of_whole_axes(layout, full_sizes)
        if order is not None:
            sizes = tuple(dim if isinstance(dim, int) else None for dim in full_sizes[2:])
            return Exit(node.outputs[0], order, sizes)
    return None


def _order_of_whole_axes(layout: Layout, full_sizes: Sequence[Dim]) -> tuple[int, ...] | None:
    """Return which source axis each axis of ``layout`` is, if each is one whole axis, else None.

    ``full_sizes`` are the sizes of the source axes.
    """
    if len(layout) != len(full_sizes):
        return None
    order: list[int | None] = []
    for parts in layout:
        if len(parts) > 1 or (parts and parts[0].stride > 1):
            return None
        if parts and not same_dim(parts[0].size, full_sizes[parts[0].axis]):
            return None
        order.append(parts[0].axis if parts else None)
    remaining = iter(axis for axis in range(len(full_sizes)) if axis not in order)
    return tuple(next(remaining) if axis is None else axis for axis in order)
