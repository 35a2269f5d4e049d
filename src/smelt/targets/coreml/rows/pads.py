"""Row for Pad. ``before`` and ``after`` are the pads at the start and the end of each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val


@writes("Pad")
def pad(c: Call) -> None:
    """Write pad, after a slice if pads are negative.

    MIL pads floats with a constant, or the last two axes by reflection or replication. Any other
    mode is a gather, and a constant around integers or bools is a concat.
    """
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
    elif mode in NATIVE_MODES and _pads_last_two_axes(x, before, after):
        c.done(_padded(c, x, before, after, NATIVE_MODES[mode]))
    elif mode != "constant":
        c.done(_gathered(c, x, before, after, mode))
    elif x.is_float:
        c.done(_padded(c, x, before, after, "constant"))
    else:
        c.done(_concatenated(c, x, before, after))


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
    """Return the dims of ``x`` after padding."""
    pairs = zip(x.dims, before, after, strict=True)
    return tuple(None if size is None else size + low + high for size, low, high in pairs)


def _fill_value(c: Call, element: Element) -> np.ndarray:
    """Return the fill value as a scalar of type ``element``, 0 by default; raises Refused if it is
    computed."""
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


NATIVE_MODES = {"reflect": "reflect", "edge": "replicate"}


def _pads_last_two_axes(x: Val, before: Sequence[int], after: Sequence[int]) -> bool:
    """True if ``x`` has floats and only its last two axes are padded, each by less than
    its size.
    """
    pairs = enumerate(zip(x.dims, before, after, strict=True))
    return x.is_float and all(
        max(low, high) < (size or 1) if axis >= x.rank - 2 else not (low or high)
        for axis, (size, low, high) in pairs
    )


def _padded(c: Call, x: Val, before: Sequence[int], after: Sequence[int], mode: str) -> Val:
    """Return ``x`` padded by MIL's ``pad`` with ``mode``: constant, reflect or replicate."""
    pads = [each for pair in zip(before, after, strict=True) for each in pair]
    fill = _fill_value(c, x.element) if mode == "constant" else x.element.numpy.type(0)
    dims = _grown(x, before, after)
    return c.w.op("pad", x.element, dims, x=x, pad=pads, mode=mode, constant_val=fill)


def _concatenated(c: Call, x: Val, before: Sequence[int], after: Sequence[int]) -> Val:
    """Return integers or bools padded with a constant, by a concat with constants for each axis."""
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
    """Return ``x`` padded with copies of its elements, by one gather for each axis."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        size = x.dims[axis]
        if not low and not high:
            continue
        if size is None:
            raise Refused(f"the mode {mode!r} along an axis of open size")
        places = np.pad(np.arange(size, dtype=np.int32), (low, high), mode=NUMPY_MODES[mode])
        x = take(c, x, places, axis)
    return x
