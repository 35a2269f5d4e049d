"""Read slices, and updates of slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import END, Call
from smelt.frontends.coreml.registry import reads


@dataclass
class Bounds:
    """The slice of an operation: a start, an end and a step for each dim of ``x``.

    ``starts`` and ``ends`` are int64 vectors; ``squeezed`` are the dims that the result lacks, and
    ``whole`` those that are taken as they are.
    """

    starts: ir.Value
    ends: ir.Value
    steps: list[int]
    squeezed: list[int]
    whole: list[int]


def _mask(call: Call, name: str, rank: int) -> list[bool]:
    """Return a mask with one entry a dim."""
    mask = call.array(name, [False] * rank).reshape(-1).tolist()
    if len(mask) != rank:
        raise call.refused(f"{name} has {len(mask)} entries for {rank} dims")
    return [bool(each) for each in mask]


def _bounds(call: Call) -> Bounds:
    """Return the slice that begin, end, stride and the masks state.

    Masked ends reach to the border in the direction of the step. A squeezed dim takes the element
    at begin.
    """
    rank = call.rank(call.x)
    steps = call.integers("stride", [1] * rank)
    if len(steps) != rank or 0 in steps:
        raise call.refused(f"its strides {steps} do not fit rank {rank}")
    begins, ends, squeezed = (
        _mask(call, name, rank) for name in ("begin_mask", "end_mask", "squeeze_mask")
    )
    steps = [1 if single else step for step, single in zip(steps, squeezed, strict=True)]
    first = [0 if step > 0 else END for step in steps]
    last = [END if step > 0 else -END for step in steps]
    axes = [axis for axis in range(rank) if squeezed[axis]]
    begin, end = call.constant("begin"), call.constant("end")
    if begin is not None and (
        end is not None or all(e or s for e, s in zip(ends, squeezed, strict=True))
    ):
        given = np.asarray(begin.value).reshape(-1).tolist()
        stops = [0] * rank if end is None else np.asarray(end.value).reshape(-1).tolist()
        if len(given) != rank or len(stops) != rank:
            raise call.refused(f"begin or end do not have {rank} entries")
        begun = [
            f if b and not s else g
            for f, b, s, g in zip(first, begins, squeezed, given, strict=True)
        ]
        ended = [n if m else e for n, m, e in zip(last, ends, stops, strict=True)]
        ended = [
            (b + 1 if b != -1 else END) if s else e
            for b, s, e in zip(begun, squeezed, ended, strict=True)
        ]
        whole = [
            axis
            for axis in range(rank)
            if not squeezed[axis] and steps[axis] == 1 and begun[axis] == 0 and ended[axis] == END
        ]
        return Bounds(call.ints(begun), call.ints(ended), steps, axes, whole)
    starts = _masked(
        call, call.i64("begin"), [b and not s for b, s in zip(begins, squeezed, strict=True)], first
    )
    stops_ = _masked(call, call.i64("end"), ends, last) if call.has("end") else starts
    if axes:
        single = call.op("Add", starts, call.ints([1] * rank))
        is_last = call.op("Equal", starts, call.ints([-1] * rank))
        single = call.op("Where", is_last, call.ints([END] * rank), single)
        stops_ = call.op("Where", call.scope.shared.constant(np.array(squeezed)), single, stops_)
    whole = [a for a in range(rank) if begins[a] and ends[a] and not squeezed[a] and steps[a] == 1]
    return Bounds(starts, stops_, steps, axes, whole)


def _masked(
    call: Call, vector: ir.Value, mask: Sequence[bool], replacement: Sequence[int]
) -> ir.Value:
    """Return ``vector`` with the entries of ``mask`` replaced."""
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
    """Return ``x`` sliced along the axes that are not kept whole."""
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
    """Return ``size`` elements of ``x`` from ``begin`` on in each dim; -1 takes all that follow."""
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
    """Return ``x`` with ``update`` in place of the slice ``begin:end:stride``."""
    bounds, x = _bounds(call), call.x
    update = call.value("update")
    if bounds.squeezed:
        update = call.op("Unsqueeze", update, call.ints(bounds.squeezed))
    axes = [axis for axis in range(call.rank(x)) if axis not in bounds.whole]
    if not axes:
        return call.op("Identity", update)
    if len(axes) == 1 or any(step != 1 for step in bounds.steps):
        return _scattered(call, x, update, bounds, axes)
    return _put_between(call, x, update, bounds, axes)


def _entry(call: Call, vector: ir.Value, axis: int) -> ir.Value:
    """Return one entry of a vector, as a vector."""
    if vector.const_value is not None:
        return call.ints([int(vector.const_value.numpy()[axis])])
    return call.op("Gather", vector, call.ints([axis]))


def _put_between(
    call: Call, x: ir.Value, update: ir.Value, bounds: Bounds, axes: Sequence[int]
) -> ir.Value:
    """Return ``x`` with ``update`` in it: along the first axis, what lies before and behind the
    slice stays, and what lies inside is updated along the other axes."""
    axis, rest = axes[0], axes[1:]
    start, end = (_entry(call, vector, axis) for vector in (bounds.starts, bounds.ends))
    at = call.ints([axis])
    inside = update
    if rest:
        inner = call.op("Slice", x, start, end, at)
        inside = _put_between(call, inner, update, bounds, rest)
    before = call.op("Slice", x, call.ints([0]), start, at)
    behind = call.op("Slice", x, end, call.ints([END]), at)
    return call.op("Concat", before, inside, behind, axis=axis)


def _scattered(
    call: Call, x: ir.Value, update: ir.Value, bounds: Bounds, axes: Sequence[int]
) -> ir.Value:
    """Return ``x`` with ``update`` at the places that the slice takes along ``axes``.

    ONNX scatters along the first dims only, so that ``axes`` come first.
    """
    rank = call.rank(x)
    perm = [*axes, *(axis for axis in range(rank) if axis not in axes)]
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
        indices = call.op("Unsqueeze", grids[0], call.ints([1]))
    else:
        total = grids[0]
        for grid in grids[1:]:
            total = call.op("Add", total, grid)
        shape_ = call.op("Shape", total)
        same = [call.op("Expand", grid, shape_) for grid in grids]
        grown = [call.op("Unsqueeze", grid, call.ints([len(axes)])) for grid in same]
        indices = call.op("Concat", *grown, axis=len(axes))
    turned, new = call.transposed(x, perm), call.transposed(update, perm)
    result = call.op("ScatterND", turned, indices, new)
    return call.transposed(result, [perm.index(axis) for axis in range(rank)])
