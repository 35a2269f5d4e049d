"""Row for Slice, and ``take``, which other rows use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val

FAR = 2**31 - 2
"""Starts and ends beyond it mean the end of the axis, whatever its size."""


class Range(NamedTuple):
    """The slice of one axis; a mask makes MIL ignore ``begin`` or ``end`` and use the
    whole axis.
    """

    begin: int | Val = 0
    end: int | Val = 0
    step: int = 1
    begin_mask: bool = True
    end_mask: bool = True


@writes("Slice")
def slices(c: Call) -> None:
    """Write slice_by_index with masks for full ranges; a negative step reverses the axis first."""
    x = c.x()
    if "starts" in c.node.attributes:
        raise Refused("its starts are attributes", "raise the model to opset 10")
    starts, ends = c.ints(1), c.ints(2)
    axes = c.fixed_ints(3, "axes")
    steps = c.fixed_ints(4, "steps")
    if starts is None or ends is None:
        _computed(c, x, axes, steps)
        return
    axes = [axis % x.rank for axis in (axes if axes is not None else range(len(starts)))]
    steps = steps or [1] * len(axes)
    ranges: dict[int, Range] = {}
    reversed_axes = []
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = x.dims[axis]
        if size is None:
            ranges[axis] = _open_range(c, x, axis, start, end, step)
            if step < 0:
                reversed_axes.append(axis)
            continue
        places = range(size)[slice(start, end if not (step < 0 and end < -size) else None, step)]
        if not len(places):
            raise Refused("a dimension of its result is 0, which Core ML does not have")
        if step < 0:
            reversed_axes.append(axis)
            places = range(size - 1 - places[0], size - places[-1], -step)
        first, last = places[0], places[-1] + 1
        ranges[axis] = Range(first, last, abs(step), first == 0, last == size)
    if reversed_axes:
        x = c.w.op("reverse", x.element, x.dims, x=x, axes=sorted(reversed_axes))
    _write(c, x, ranges)


def _open_range(c: Call, x: Val, axis: int, start: int, end: int, step: int) -> Range:
    """Return the slice of an axis of open size.

    ONNX clamps starts and ends to the size. That is computed in each run, unless the least size of
    the axis is large enough. Raises Refused if the slice is empty at the least size.
    """
    dim = _symbol(c, axis)
    low = c.facts.lower_bounds.get(dim, 1)
    if step < 0:
        if (start != -1 and start < FAR) or end > -FAR:
            raise Refused("a negative step on a part of an axis of open size")
        return Range(step=-step)
    size = None
    first: int | Val = start
    last: int | Val = end
    to_start, to_end = start == 0 or start <= -FAR, end >= FAR
    if not to_start and (start > low or -start > low):
        size = c.size(x, axis)
        first = (
            c.op("minimum", size, start)
            if start > 0
            else c.op("maximum", c.op("add", size, start), 0)
        )
    if not to_end and (end > low or -end > low):
        size = size or c.size(x, axis)
        last = c.op("minimum", size, end) if end > 0 else c.op("maximum", c.op("add", size, end), 0)
    part = slice(start, end, step)
    if dim in c.facts.lower_bounds and not len(range(low)[part]):
        least = next((size for size in range(low, 1 << 16) if len(range(size)[part])), low + 1)
        raise Refused(
            f"a dimension of its result is 0 where {dim} is {low}",
            f"raise the least size: --dim {dim}={least}..N",
        )
    return Range(0 if to_start else first, 0 if to_end else last, step, to_start, to_end)


def _symbol(c: Call, axis: int) -> str:
    """Return the symbolic size of an axis of the operand as text."""
    value = c.input(0)
    assert value is not None
    assert value.shape is not None
    return str(value.shape[axis])


def _write(c: Call, x: Val, ranges: dict[int, Range]) -> None:
    """Write slice_by_index with a range by axis; an axis that ``ranges`` lacks stays whole."""
    columns = [ranges.get(axis, Range()) for axis in range(x.rank)]
    if all(each.step == 1 and each.begin_mask and each.end_mask for each in columns):
        c.done(x)
        return
    begin, end, step, low, high = (list(each) for each in zip(*columns, strict=True))
    result = c.write(
        "slice_by_index",
        x=x,
        begin=c.vector(begin),
        end=c.vector(end),
        stride=step,
        begin_mask=low,
        end_mask=high,
        squeeze_mask=[False] * x.rank,
    )
    c.done(result)


def _computed(c: Call, x: Val, axes: Sequence[int] | None, steps: Sequence[int] | None) -> None:
    """Write a slice with computed starts or ends, clamped to the sizes as ONNX does."""
    starts, ends = _places(c, 1), _places(c, 2)
    count = starts.dims[0]
    if count is None:
        raise Refused("the number of its starts is open")
    axes = [axis % x.rank for axis in (axes if axes is not None else range(count))]
    if steps is not None and any(step < 1 for step in steps):
        raise Refused("a negative step with computed starts")
    ranges: dict[int, Range] = {}
    for number, axis in enumerate(axes):
        size = c.size(x, axis)
        begin, end = (_clamped(c, c.element_of(each, number), size) for each in (starts, ends))
        step = 1 if steps is None else steps[number]
        ranges[axis] = Range(begin, end, step, begin_mask=False, end_mask=False)
    _write(c, x, ranges)


def _places(c: Call, index: int) -> Val:
    """Return the starts or ends in input ``index`` as int32; constants are clamped to ``FAR``."""
    array = c.array(index)
    if array is None:
        return c.x(index, Element.INT32)
    return c.w.constant(np.clip(array, -FAR, FAR).astype(np.int32))


def _clamped(c: Call, place: Val, size: Val) -> Val:
    """Return ``place``, plus ``size`` if it is negative, clamped to the range from 0 to
    ``size``.
    """
    negative = c.op("less", place, 0, element=Element.BOOL)
    from_start = c.select(negative, c.op("add", place, size), place, Element.INT32)
    return c.op("minimum", c.op("maximum", from_start, 0), size)


def take(c: Call, x: Val, places: np.ndarray, axis: int) -> Val:
    """Return the elements of ``x`` at constant ``places`` along ``axis``, as a gather.

    The axis is replaced by those of ``places``; a scalar removes it.
    """
    kind = x.element
    source = c.cast(x, Element.INT32) if kind == Element.BOOL else x
    dims = (*x.dims[:axis], *places.shape, *x.dims[axis + 1 :])
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    taken = c.w.op(
        "gather",
        source.element,
        dims,
        x=source,
        indices=places.astype(np.int32),
        axis=axis,
        batch_dims=0,
        **more,
    )
    return c.cast(taken, kind)
