"""Taps that meet an element of the image, compared with a count over all taps and results."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smelt.passes.convolution.padded_axis import PaddedAxis

sizes = st.integers(1, 12)


@given(sizes, sizes, sizes, st.integers(0, 20), st.integers(0, 20), st.integers(1, 4))
def test_a_tap_lives_if_one_result_of_it_meets_an_element(
    size: int, stride: int, dilation: int, begin: int, end: int, taps: int
) -> None:
    results = (size + begin + end - (taps - 1) * dilation - 1) // stride + 1
    if results < 1:
        return
    axis = PaddedAxis(size, results, stride, taps, dilation, begin)
    met = [
        any(0 <= o * stride + tap * dilation - begin < size for o in range(results))
        for tap in range(taps)
    ]
    assert [axis.meets(tap) for tap in range(taps)] == met
    alive = [tap for tap in range(taps) if met[tap]]
    assert axis.useful_taps() == (range(alive[0], alive[-1] + 1) if alive else range(0))
