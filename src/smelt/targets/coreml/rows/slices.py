"""Slice and Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val

FAR = 2**31 - 2
"""Starts and ends beyond it mean the end of the axis, whatever its size."""


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
    ranges: dict[int, tuple[int | Val, int | Val, int, bool, bool]] = {}
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
        ranges[axis] = first, last, abs(step), first == 0, last == size
    if reversed_axes:
        x = c.w.op("reverse", x.element, x.dims, x=x, axes=sorted(reversed_axes))
    _write(c, x, ranges)


def _open_range(
    c: Call, x: Val, axis: int, start: int, end: int, step: int
) -> tuple[int | Val, int | Val, int, bool, bool]:
    """Return begin, end, step and masks on an axis of open size; ends beyond it are clamped."""
    dim = _name(c, axis)
    low = c.facts.lower_bounds.get(dim, 1)
    if step < 0:
        if (start != -1 and start < FAR) or end > -FAR:
            raise Refused("a negative step on a part of an axis of open size")
        return 0, 0, -step, True, True
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
    return 0 if to_start else first, 0 if to_end else last, step, to_start, to_end


def _name(c: Call, axis: int) -> str:
    """Return the symbol that is the size of an open axis of the operand."""
    value = c.input(0)
    assert value is not None
    assert value.shape is not None
    return str(value.shape[axis])


def _write(
    c: Call, x: Val, ranges: dict[int, tuple[int | Val, int | Val, int, bool, bool]]
) -> None:
    """Write slice_by_index; axes that ``ranges`` lacks stay whole."""
    whole = (0, 0, 1, True, True)
    columns = [ranges.get(axis, whole) for axis in range(x.rank)]
    if all(step == 1 and low and high for _, _, step, low, high in columns):
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
    ranges: dict[int, tuple[int | Val, int | Val, int, bool, bool]] = {}
    for number, axis in enumerate(axes):
        size = c.size(x, axis)
        begin, end = (_clamped(c, c.element_of(each, number), size) for each in (starts, ends))
        ranges[axis] = begin, end, 1 if steps is None else steps[number], False, False
    _write(c, x, ranges)


def _places(c: Call, index: int) -> Val:
    """Return starts or ends as int32; constants beyond it are beyond every size."""
    array = c.array(index)
    if array is None:
        return c.x(index, Element.INT32)
    return c.w.constant(np.clip(array, -FAR, FAR).astype(np.int32))


def _clamped(c: Call, place: Val, size: Val) -> Val:
    """Return a place on an axis, from the end if it is negative, clamped to 0 and the size."""
    negative = c.op("less", place, 0, element=Element.BOOL)
    from_start = c.select(negative, c.op("add", place, size), place, Element.INT32)
    return c.op("minimum", c.op("maximum", from_start, 0), size)


@writes("Pad")
def pad(c: Call) -> None:
    """Write pad; negative pads become slices, and other modes or integers gathers and concats."""
    x, mode = c.x(), c.attribute("mode") or "constant"
    pads = c.attribute("pads") if "pads" in c.node.attributes else c.fixed_ints(1, "pads")
    axes = c.fixed_ints(3, "axes")
    if pads is None:
        raise Refused("its pads are computed; Core ML needs constants")
    axes = [axis % x.rank for axis in (axes if axes is not None else range(x.rank))]
    before, after = [0] * x.rank, [0] * x.rank
    for number, axis in enumerate(axes):
        before[axis], after[axis] = pads[number], pads[number + len(axes)]
    x = _cropped(c, x, before, after)
    before, after = [max(each, 0) for each in before], [max(each, 0) for each in after]
    if not any(before + after):
        c.done(x)
    elif mode != "constant":
        c.done(_gathered(c, x, before, after, mode))
    elif x.is_float:
        c.done(_padded(c, x, before, after))
    else:
        c.done(_surrounded(c, x, before, after))


def _cropped(c: Call, x: Val, before: Sequence[int], after: Sequence[int]) -> Val:
    """Return ``x`` without the elements that negative pads remove."""
    if min(*before, *after) >= 0:
        return x
    dims = tuple(
        None if size is None else size + min(low, 0) + min(high, 0)
        for size, low, high in zip(x.dims, before, after, strict=True)
    )
    if None in x.dims and any(
        size is None and min(low, high) < 0
        for size, low, high in zip(x.dims, before, after, strict=True)
    ):
        raise Refused("a negative pad of an open size")
    return c.w.op(
        "slice_by_index",
        x.element,
        dims,
        x=x,
        begin=[max(-low, 0) for low in before],
        end=[0 if d is None else d + max(-low, 0) for d, low in zip(dims, before, strict=True)],
        stride=[1] * x.rank,
        begin_mask=[low >= 0 for low in before],
        end_mask=[high >= 0 for high in after],
        squeeze_mask=[False] * x.rank,
    )


def _grown(x: Val, before: Sequence[int], after: Sequence[int]) -> tuple[int | None, ...]:
    """Return the dims of ``x`` with pads."""
    pairs = zip(x.dims, before, after, strict=True)
    return tuple(None if size is None else size + low + high for size, low, high in pairs)


def _fill_value(c: Call, element: Element) -> np.ndarray:
    """Return the constant around the operand, 0 by default."""
    if "value" in c.node.attributes:
        return np.asarray(
            c.constant(np.asarray(c.attribute("value"), np.float32), element, "fill").array
        )
    if not c.has(2):
        return np.asarray(0, element.numpy)
    array = c.array(2)
    if array is None:
        raise Refused("its fill value is computed; Core ML needs a constant")
    filled = c.constant(array.reshape(()), element, "fill").array
    assert filled is not None
    return filled


def _padded(c: Call, x: Val, before: Sequence[int], after: Sequence[int]) -> Val:
    """Return ``x`` in a constant."""
    pads = [each for pair in zip(before, after, strict=True) for each in pair]
    fill = _fill_value(c, x.element)
    dims = _grown(x, before, after)
    return c.w.op("pad", x.element, dims, x=x, pad=pads, mode="constant", constant_val=fill)


def _surrounded(c: Call, x: Val, before: Sequence[int], after: Sequence[int]) -> Val:
    """Return integers or bools in a constant, by concats."""
    fill = _fill_value(c, x.element)
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        parts = [x]
        for count, place in ((low, 0), (high, 2)):
            if not count:
                continue
            sizes = [*x.dims[:axis], count, *x.dims[axis + 1 :]]
            known = [size for size in sizes if size is not None]
            if len(known) < len(sizes):
                raise Refused("integers are padded around open sizes")
            block = c.w.constant(np.full(known, fill))
            parts = [block, *parts] if place == 0 else [*parts, block]
        if len(parts) > 1:
            dims = _grown(
                x,
                [low if a == axis else 0 for a in range(x.rank)],
                [high if a == axis else 0 for a in range(x.rank)],
            )
            x = c.w.op("concat", x.element, dims, values=parts, axis=axis, interleave=False)
    return x


NUMPY_MODES: dict[str, Any] = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}


def _gathered(c: Call, x: Val, before: Sequence[int], after: Sequence[int], mode: str) -> Val:
    """Return ``x`` with copies of its elements around it, by a gather an axis."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        size = x.dims[axis]
        if not low and not high:
            continue
        if size is None:
            raise Refused(f"the mode {mode!r} along an axis of open size")
        places = np.pad(np.arange(size, dtype=np.int32), (low, high), mode=NUMPY_MODES[mode])
        x = take(c, x, places, axis)
    return x


def take(c: Call, x: Val, places: np.ndarray, axis: int) -> Val:
    """Return the elements at constant ``places`` along ``axis``; bools as integers."""
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
