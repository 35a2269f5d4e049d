"""Resolves attributes of Slice and Pad against a static shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue


def slices(
    attributes: Mapping[str, AttributeValue | DotDims], shape: Sequence[int]
) -> tuple[slice, ...]:
    """Return one Python slice per dim for a Slice instruction on ``shape``.

    A backward slice that reaches the front has None as its stop, as Python requires.
    """
    parts = [slice(0, size, 1) for size in shape]
    names = ("axes", "starts", "ends", "steps")
    for axis, start, end, step in zip(*(_ints(attributes[name]) for name in names), strict=True):
        size = shape[axis]
        first_end, last_start = (0, size) if step > 0 else (-1, size - 1)
        # ONNX counts from the back once and clamps; -1 as a resolved end means "before the front".
        start_row = _clamp(start + size if start < 0 else start, 0, last_start)
        end_row = _clamp(end + size if end < 0 else end, first_end, size)
        parts[axis] = slice(start_row, None if end_row < 0 else end_row, step)
        if size == 0:
            parts[axis] = slice(0, 0, 1)
    return tuple(parts)


def pad_crops(
    pads: Sequence[int], shape: Sequence[int]
) -> tuple[tuple[slice, ...], list[tuple[int, int]]]:
    """Return the part of each dim that a Pad keeps (negative pads crop), and the widths that it
    adds."""
    rank = len(shape)
    pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    keep = tuple(
        slice(max(0, -low), size - max(0, -high))
        for (low, high), size in zip(pairs, shape, strict=True)
    )
    return keep, [(max(0, low), max(0, high)) for low, high in pairs]


def _ints(value: object) -> tuple[int, ...]:
    """Return an attribute, known to be a tuple of numbers, as a tuple of integers."""
    assert isinstance(value, tuple)
    return tuple(int(item) for item in value)


def _clamp(value: int, low: int, high: int) -> int:
    """Return ``value`` limited to ``low`` and ``high``."""
    return min(max(value, low), high)
