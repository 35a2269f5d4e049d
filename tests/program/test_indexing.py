"""Slice bounds mean what ONNX says, for every start, end and step."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.program.indexing import pad_crops, slices


def onnx_slice(size: int, start: int, end: int, step: int) -> list[int]:
    """The definition, one element at a time."""
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        start, end = min(max(start, 0), size), min(max(end, 0), size)
    else:
        start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return list(range(start, end, step))


bounds = st.one_of(st.integers(-9, 9), st.sampled_from([-(2**63), 2**63 - 1]))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 5), bounds, bounds, st.integers(-3, 3).filter(bool))
def test_slices(size: int, start: int, end: int, step: int) -> None:
    attributes = {"starts": (start,), "ends": (end,), "axes": (1,), "steps": (step,)}
    found = slices(attributes, (2, size))
    taken = np.arange(2 * size).reshape(2, size)[found]
    expected = onnx_slice(size, start, end, step) if size else []
    np.testing.assert_array_equal(taken[0] if size else taken.reshape(2, -1)[0], expected)


def test_pads_add_and_crop() -> None:
    keep, widths = pad_crops((1, -1, 0, 2), (3, 4))
    assert keep == (slice(0, 3), slice(1, 4))
    assert widths == [(1, 0), (0, 2)]
