"""Decompositions of operators that only move or repeat elements; the results are exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.decompositions.row import Call, Row

CROPPED = "tf_crop_and_resize"
"""The mode of Resize that reads the region of interest."""

MOST_DIMS = 4
"""The most dims that all consumers take; a tensor of more is reshaped before it is repeated."""

MOST_COPIES = 64
"""The most copies of a tensor that one Concat joins instead of Tile or Expand."""


def _to_shape(c: Call) -> ir.Value | None:
    """Return a Reshape of the first input to the shape of the result; None if that has several
    unknown sizes.
    """
    shape = c.node.outputs[0].shape
    if shape is None:
        return None
    dims = [dim if type(dim) is int else -1 for dim in shape]
    if dims.count(-1) > 1 or (-1 in dims and 0 in dims):
        return None
    return c.b.op("Reshape", c[0], c.b.const_i64(dims))


def _repeats(c: Call) -> tuple[list[int], list[int]] | None:
    """Return the sizes of the first input, with leading ones, and how often each axis repeats."""
    sizes, result = c.sizes(), c.sizes(c.node.outputs[0])
    if sizes is None or result is None or 0 in result:
        return None
    sizes = (*(1 for _ in result[len(sizes) :]), *sizes)
    return list(sizes), [after // before for before, after in zip(sizes, result, strict=True)]


def _with_rank_of_result(c: Call, sizes: Sequence[int]) -> ir.Value:
    """Return the first input with the rank of ``sizes``."""
    same = len(sizes) == c.rank()
    return c[0] if same else c.b.op("Reshape", c[0], c.b.const_i64(sizes))


def _tiled(c: Call) -> ir.Value | None:
    """Return the broadcast of the first input by Tile; None if a size is unknown."""
    sizes_and_repeats = _repeats(c)
    if sizes_and_repeats is None:
        return None
    sizes, repeats = sizes_and_repeats
    return c.b.op("Tile", _with_rank_of_result(c, sizes), c.b.const_i64(repeats))


def _joined_copies(c: Call) -> ir.Value | None:
    """Return a Tile or Expand as Concats of copies of the first input, one for each axis that
    repeats.

    None for more than ``MOST_COPIES``, and for unknown sizes.
    """
    sizes_and_repeats = _repeats(c)
    if sizes_and_repeats is None or max(sizes_and_repeats[1], default=1) > MOST_COPIES:
        return None
    sizes, repeats = sizes_and_repeats
    result = [size * count for size, count in zip(sizes, repeats, strict=True)]
    if len(sizes) > MOST_DIMS:
        sizes, repeats = _with_few_dims(sizes, repeats)
    value = _with_rank_of_result(c, sizes)
    for axis, count in enumerate(repeats):
        if count > 1:
            value = c.b.op("Concat", *[value] * count, axis=axis)
    if len(sizes) < len(result):
        return c.b.op("Reshape", value, c.b.const_i64(result))
    return value if value is not c[0] else c.b.op("Identity", value)


def _with_few_dims(sizes: list[int], repeats: list[int]) -> tuple[list[int], list[int]]:
    """Return sizes and repeats with neighbouring axes that do not repeat merged into one.

    ``[2, 3, 4], [1, 1, 5]`` gives ``[6, 4], [1, 5]``.
    """
    merged: list[tuple[int, int]] = []
    for size, count in zip(sizes, repeats, strict=True):
        if count == 1 and merged and merged[-1][1] == 1:
            merged[-1] = merged[-1][0] * size, 1
        else:
            merged.append((size, count))
    return [size for size, _ in merged], [count for _, count in merged]


def _rows_by_gather_nd(c: Call) -> ir.Value | None:
    """Return a Gather along axis 0 as a GatherND, which takes negative indices, too.

    None for another axis.
    """
    if c.attributes["axis"] != 0 or c[1].shape is None:
        return None
    places = c.b.op("Unsqueeze", c[1], c.b.const_i64([-1]))
    return c.b.op("GatherND", c[0], places)


def _columns_by_gather_nd(c: Call) -> ir.Value | None:
    """Return a Gather along an axis other than 0 as a GatherND of the transposed input.

    None for axis 0.
    """
    rank, shape = c.rank(), c[1].shape
    if rank is None or shape is None or c.attributes["axis"] % rank == 0:
        return None
    axis, count = c.attributes["axis"] % rank, len(shape)
    rows = c.b.op("Transpose", c[0], perm=[axis, *(n for n in range(rank) if n != axis)])
    picked = c.b.op("GatherND", rows, c.b.op("Unsqueeze", c[1], c.b.const_i64([-1])))
    back = [*range(count, count + axis), *range(count), *range(count + axis, rank + count - 1)]
    return c.b.op("Transpose", picked, perm=back)


def _consecutive_rows(c: Call) -> ir.Value | None:
    """Return a Gather of one index, or of consecutive indices, as a Slice; None for others."""
    rank, places = c.rank(), c.constants.get(c[1])
    if rank is None or places is None or places.ndim > 1 or places.size == 0:
        return None
    axis, flat = c.attributes["axis"] % rank, places.reshape(-1)
    first, last = int(flat[0]), int(flat[-1])
    if (np.diff(flat) != 1).any() or first < 0 <= last:
        return None
    end = last + 1 if last != -1 else np.iinfo(np.int64).max
    bounds = (c.b.const_i64([number]) for number in (first, int(end), axis))
    part = c.b.op("Slice", c[0], *bounds)
    return part if places.ndim else c.b.op("Squeeze", part, c.b.const_i64([axis]))


def _flat_places(c: Call) -> tuple[list[int], list[int], np.ndarray] | None:
    """Return ``(leading sizes, other sizes, places)`` of a GatherElements with constant indices.

    The leading axes are those along which the indices do not change. ``places`` has, for each
    element of the other axes of the result, its position in the flattened other axes of the first
    input. Sizes [5, 4] with the indices [3, 0] in each of 5 rows give ``([5], [2], [3, 0])``. None
    if the indices are not constant, or have other sizes than the first input before ``axis``.
    """
    sizes, places = c.sizes(), c.constants.get(c[1], limit=None)
    if sizes is None or places is None or places.size == 0 or 0 in sizes:
        return None
    axis = c.attributes["axis"] % len(sizes)
    lead = 0
    while lead < axis and sizes[lead] == places.shape[lead]:
        if (places != places[:1]).any():
            break
        lead += 1
        places = places[0]
    if lead + places.ndim != len(sizes):
        return None
    tail = sizes[lead:]
    grid = np.indices(places.shape)
    grid[axis - lead] = places % tail[axis - lead]
    flat = np.ravel_multi_index(tuple(grid), tail)
    return list(sizes[:lead]), list(places.shape), flat.reshape(-1)


def _elements_by_gather(c: Call) -> ir.Value | None:
    """Return a GatherElements as one Gather from rows of the flattened other axes.

    It applies if the constant indices are the same along the leading axes; else None.
    """
    sizes_and_places = _flat_places(c)
    if sizes_and_places is None:
        return None
    lead, tail, places = sizes_and_places
    rows = c.b.op("Reshape", c[0], c.b.const_i64([*lead, -1]))
    picked = c.b.op("Gather", rows, c.b.const_i64(places.tolist()), axis=len(lead))
    return c.b.op("Reshape", picked, c.b.const_i64([*lead, *tail]))


def _padded(c: Call) -> ir.Value | None:
    """Return a Pad as Concats with constant blocks; None for other modes and negative pads."""
    rank, sizes, pads = c.rank(), c.sizes(), c.ints(1)
    if rank is None or sizes is None or pads is None or c.attributes["mode"] != "constant":
        return None
    axes = range(rank) if c.get(3) is None else c.ints(3)
    fill = 0 if c.get(2) is None else c.constants.scalar(c.get(2))
    if axes is None or fill is None or min(pads, default=0) < 0 or c[0].dtype is None:
        return None
    value, dims = c[0], list(sizes)
    for pad_index, axis in enumerate(axis % rank for axis in axes):
        blocks = [value]
        for count, is_front in ((pads[pad_index], True), (pads[pad_index + len(axes)], False)):
            if count:
                shape = [*dims[:axis], count, *dims[axis + 1 :]]
                block = c.b.constant(np.full(shape, fill, c[0].dtype.numpy()))
                blocks = [block, *blocks] if is_front else [*blocks, block]
        value = c.b.op("Concat", *blocks, axis=axis) if len(blocks) > 1 else value
        dims[axis] += pads[pad_index] + pads[pad_index + len(axes)]
    return value if value is not c[0] else c.b.op("Identity", value)


def _without_gaps(c: Call) -> ir.Value | None:
    """Return a Resize whose absent region of interest is an empty constant.

    Some consumers take no absent operand between others.
    """
    if c.get(1) is not None or c.attributes["coordinate_transformation_mode"] == CROPPED:
        return None
    attributes = {each.name: each.value for each in c.node.attributes.values()}
    region = c.b.constant(np.zeros(0, np.float32))
    return c.b.op("Resize", c[0], region, *c.node.inputs[2:], **attributes)


def _parts(c: Call) -> tuple[ir.Value, ...] | None:
    """Return the parts of a Split as Slices."""
    rank = c.rank()
    if rank is None:
        return None
    axis = c.attributes["axis"] % rank
    lengths: list[int] = []
    for value in c.node.outputs:
        size = None if value.shape is None else value.shape[axis]
        if not isinstance(size, int):
            return None
        lengths.append(size)
    ends = [sum(lengths[: position + 1]) for position in range(len(lengths))]
    axes = c.b.const_i64([axis])
    return tuple(
        c.b.op("Slice", c[0], c.b.const_i64([end - size]), c.b.const_i64([end]), axes)
        for end, size in zip(ends, lengths, strict=True)
    )


ROWS: Mapping[str, tuple[Row, ...]] = {
    "Expand": (Row("Tile Reshape", _tiled), Row("Concat Reshape Identity", _joined_copies)),
    "Flatten": (Row("Reshape", _to_shape),),
    "Gather": (
        Row("Slice Squeeze", _consecutive_rows),
        Row("GatherND Unsqueeze", _rows_by_gather_nd),
        Row("GatherND Unsqueeze Transpose", _columns_by_gather_nd),
    ),
    "GatherElements": (Row("Reshape Gather", _elements_by_gather),),
    "Pad": (Row("Concat Identity", _padded),),
    "Resize": (Row("Resize", _without_gaps),),
    "Split": (Row("Slice", _parts),),
    "Squeeze": (Row("Reshape", _to_shape),),
    "Tile": (Row("Concat Reshape Identity", _joined_copies),),
    "Unsqueeze": (Row("Reshape", _to_shape),),
}
