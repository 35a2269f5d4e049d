"""Readers of slices, and of updates of slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import END, Call
from smelt.frontends.coreml.registry import reads


@dataclass
class Bounds:
    """The slice of an operation: a start, an end and a step for each axis of ``x``.

    ``starts`` and ``ends`` are int64 vectors. ``squeezed`` are the axes that the result lacks, and
    ``whole`` the axes that are not sliced.
    """

    starts: ir.Value
    ends: ir.Value
    steps: list[int]
    squeezed: list[int]
    whole: list[int]


def _mask(call: Call, name: str, rank: int) -> list[bool]:
    """Return the mask ``name``, one bool for each of ``rank`` axes, all False if it is missing."""
    mask = call.array(name, [False] * rank).reshape(-1).tolist()
    if len(mask) != rank:
        raise call.refused(f"{name} has {len(mask)} entries for {rank} dims")
    return [bool(each) for each in mask]


class Masks(NamedTuple):
    """The masks of a slice, one bool for each axis: ignore begin, ignore end, remove the axis."""

    begin: list[bool]
    end: list[bool]
    squeeze: list[bool]


def _bounds(call: Call) -> Bounds:
    """Return the slice that begin, end, stride and the masks describe.

    A masked begin or end is replaced by the border of the axis in the direction of the step. A
    squeezed axis takes the one element at begin.
    """
    rank = call.rank(call.x)
    steps = call.integers("stride", [1] * rank)
    if len(steps) != rank or 0 in steps:
        raise call.refused(f"its strides {steps} do not fit rank {rank}")
    masks = Masks(*(_mask(call, f"{name}_mask", rank) for name in Masks._fields))
    steps = [1 if single else step for step, single in zip(steps, masks.squeeze, strict=True)]
    needs_end = not all(e or s for e, s in zip(masks.end, masks.squeeze, strict=True))
    begin, end = call.constant("begin"), call.constant("end")
    if begin is not None and (end is not None or not needs_end):
        begins = np.asarray(begin.value).reshape(-1).tolist()
        ends = [0] * rank if end is None else np.asarray(end.value).reshape(-1).tolist()
        return _constant_bounds(call, begins, ends, steps, masks)
    return _computed_bounds(call, steps, masks)


def _borders(steps: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the start and the end of whole axes, in the direction of each step."""
    return [0 if s > 0 else END for s in steps], [END if s > 0 else -END for s in steps]


def _constant_bounds(
    call: Call, begins: Sequence[int], ends: Sequence[int], steps: list[int], masks: Masks
) -> Bounds:
    """Return the slice with constant ``begins`` and ``ends``; raises E121 for a wrong count."""
    rank = len(steps)
    if len(begins) != rank or len(ends) != rank:
        raise call.refused(f"begin or end do not have {rank} entries")
    first, last = _borders(steps)
    starts, stops = list(begins), list(ends)
    for axis in range(rank):
        if masks.squeeze[axis]:  # one element; -1 + 1 would be 0, the start of the axis
            stops[axis] = starts[axis] + 1 if starts[axis] != -1 else END
            continue
        starts[axis] = first[axis] if masks.begin[axis] else starts[axis]
        stops[axis] = last[axis] if masks.end[axis] else stops[axis]
    squeezed = [axis for axis in range(rank) if masks.squeeze[axis]]
    whole = [
        axis
        for axis in range(rank)
        if axis not in squeezed and (steps[axis], starts[axis], stops[axis]) == (1, 0, END)
    ]
    return Bounds(call.ints(starts), call.ints(stops), steps, squeezed, whole)


def _computed_bounds(call: Call, steps: list[int], masks: Masks) -> Bounds:
    """Return the slice whose begin or end is computed by the program."""
    rank = len(steps)
    first, last = _borders(steps)
    squeezed = [axis for axis in range(rank) if masks.squeeze[axis]]
    replaced = [b and not s for b, s in zip(masks.begin, masks.squeeze, strict=True)]
    starts = _masked(call, call.i64("begin"), replaced, first)
    ends = _masked(call, call.i64("end"), masks.end, last) if call.has("end") else starts
    if squeezed:
        single = call.op("Add", starts, call.ints([1] * rank))
        is_last = call.op("Equal", starts, call.ints([-1] * rank))
        single = call.op("Where", is_last, call.ints([END] * rank), single)
        ends = call.op("Where", call.scope.shared.constant(np.array(masks.squeeze)), single, ends)
    whole = [
        axis
        for axis in range(rank)
        if masks.begin[axis] and masks.end[axis] and axis not in squeezed and steps[axis] == 1
    ]
    return Bounds(starts, ends, steps, squeezed, whole)


def _masked(
    call: Call, vector: ir.Value, mask: Sequence[bool], replacement: Sequence[int]
) -> ir.Value:
    """Return ``vector``, with the entry of ``replacement`` where ``mask`` is True."""
    if not any(mask):
        return vector
    chosen = call.scope.shared.constant(np.array(mask))
    return call.op("Where", chosen, call.ints(list(replacement)), vector)


@reads("slice_by_index")
def _slice_by_index(call: Call) -> ir.Value:
    """Return ``x[begin:end:stride]``, without the squeezed dims."""
    bounds = _bounds(call)
    result = _sliced(call, bounds)
    return call.op("Squeeze", result, call.ints(bounds.squeezed)) if bounds.squeezed else result


def _sliced(call: Call, bounds: Bounds) -> ir.Value:
    """Return ``x`` sliced, by a Slice of only those axes that the slice changes if bounds are
    constant."""
    axes = list(range(call.rank(call.x)))
    starts, ends = bounds.starts, bounds.ends
    if starts.const_value is not None and ends.const_value is not None:
        first, last = starts.const_value.numpy().tolist(), ends.const_value.numpy().tolist()
        axes = [
            axis
            for axis, (low, high, dim) in enumerate(
                zip(first, last, call.dims(call.x), strict=True)
            )
            if bounds.steps[axis] != 1 or low != 0 or high not in (END, dim)
        ]
        if not axes:
            return call.op("Identity", call.x)
        starts, ends = (call.ints([each[axis] for axis in axes]) for each in (first, last))
    steps = [bounds.steps[axis] for axis in axes]
    strides = call.ints(steps) if any(step != 1 for step in steps) else None
    return call.op("Slice", call.x, starts, ends, call.ints(axes) if axes else None, strides)


@reads("slice_by_size")
def _slice_by_size(call: Call) -> ir.Value:
    """Return ``x[begin:begin + size]`` along each axis; a size of -1 means up to the end."""
    rank = call.rank(call.x)
    axes = call.ints(range(rank))
    begin, size = call.constant("begin"), call.constant("size")
    if begin is not None and size is not None:
        starts = np.asarray(begin.value).reshape(-1).tolist()
        counts = np.asarray(size.value).reshape(-1).tolist()
        ends = [
            END if count == -1 or (start < 0 and start + count >= 0) else start + count
            for start, count in zip(starts, counts, strict=True)
        ]
        return call.op("Slice", call.x, call.ints(starts), call.ints(ends), axes)
    first, count_ = call.i64("begin"), call.i64("size")
    ends_ = call.op("Add", first, count_)
    all_of = call.op("Equal", count_, call.ints([-1]))
    ends_ = call.op("Where", all_of, call.ints([END]), ends_)
    return call.op("Slice", call.x, first, ends_, axes)


@reads("slice_update")
def _slice_update(call: Call) -> ir.Value:
    """Return ``x`` with the slice ``begin:end:stride`` replaced by ``update``.

    It becomes a concat of the parts around the slice, or a scatter if one axis is sliced or a step
    is not 1.
    """
    bounds, x = _bounds(call), call.x
    update = call.value("update")
    if bounds.squeezed:
        update = call.op("Unsqueeze", update, call.ints(bounds.squeezed))
    axes = [axis for axis in range(call.rank(x)) if axis not in bounds.whole]
    if not axes:
        return call.op("Identity", update)
    if len(axes) == 1 or any(step != 1 for step in bounds.steps):
        return _scattered(call, x, update, bounds, axes)
    return _concatenated(call, x, update, bounds, axes)


def _entry(call: Call, vector: ir.Value, axis: int) -> ir.Value:
    """Return entry ``axis`` of ``vector`` as a vector of one element."""
    if vector.const_value is not None:
        return call.ints([int(vector.const_value.numpy()[axis])])
    return call.op("Gather", vector, call.ints([axis]))


def _concatenated(
    call: Call, x: ir.Value, update: ir.Value, bounds: Bounds, axes: Sequence[int]
) -> ir.Value:
    """Return ``x`` with the slice along ``axes`` replaced by ``update``, as a concat.

    Along the first of ``axes``, the parts before and behind the slice are kept. The part between
    is updated in the same way along the other axes.
    """
    axis, rest = axes[0], axes[1:]
    start, end = (_entry(call, vector, axis) for vector in (bounds.starts, bounds.ends))
    at = call.ints([axis])
    inside = update
    if rest:
        inner = call.op("Slice", x, start, end, at)
        inside = _concatenated(call, inner, update, bounds, rest)
    before = call.op("Slice", x, call.ints([0]), start, at)
    behind = call.op("Slice", x, end, call.ints([END]), at)
    return call.op("Concat", before, inside, behind, axis=axis)


def _scattered(
    call: Call, x: ir.Value, update: ir.Value, bounds: Bounds, axes: Sequence[int]
) -> ir.Value:
    """Return ``x`` with the slice along ``axes`` replaced by ``update``, as a ScatterND.

    ScatterND updates along the first axes, so ``axes`` are moved there and back.
    """
    rank = call.rank(x)
    perm = [*axes, *(axis for axis in range(rank) if axis not in axes)]
    indices = _index_tuples(call, x, bounds, axes)
    axes_first, new = call.transposed(x, perm), call.transposed(update, perm)
    result = call.op("ScatterND", axes_first, indices, new)
    return call.transposed(result, [perm.index(axis) for axis in range(rank)])


def _index_tuples(call: Call, x: ir.Value, bounds: Bounds, axes: Sequence[int]) -> ir.Value:
    """Return the indices that the slice selects along ``axes``, as ScatterND takes them.

    The last axis of the result is the tuple, with one index for each of ``axes``.
    """
    grids = []
    for position, axis in enumerate(axes):
        whole = call.op("Squeeze", call.builder.size(x, axis), call.ints([0]))
        places = call.op("Range", call.ints(0), whole, call.ints(1))
        start, end = (_entry(call, vector, axis) for vector in (bounds.starts, bounds.ends))
        step = call.ints([bounds.steps[axis]])
        taken = call.op("Slice", places, start, end, call.ints([0]), step)
        shape = [1] * len(axes)
        shape[position] = -1
        grids.append(call.op("Reshape", taken, call.ints(shape)))
    if len(grids) == 1:
        return call.op("Unsqueeze", grids[0], call.ints([1]))
    total = grids[0]
    for grid in grids[1:]:
        total = call.op("Add", total, grid)
    common_shape = call.op("Shape", total)
    expanded = [call.op("Expand", grid, common_shape) for grid in grids]
    columns = [call.op("Unsqueeze", grid, call.ints([len(axes)])) for grid in expanded]
    return call.op("Concat", *columns, axis=len(axes))
