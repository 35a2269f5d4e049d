"""Results of int64 that 32 bits do not hold are refused if they always are, else reported."""

from __future__ import annotations

import pytest
from targets.coreml.packages import written

from smelt.errors import SmeltError

BOUNDED = (
    "g (int64[3] x) => (int64[3] y) <int64 low = {LOW}, int64 high = {HIGH}, int64 k = {K}>"
    " { z = Clip(x, low, high) y = Mul(z, k) }"
)


def bounded(low: int, high: int, factor: int) -> str:
    return BOUNDED.replace("LOW", str(low)).replace("HIGH", str(high)).replace("K", str(factor))


def test_results_beyond_32_bits_for_all_inputs_are_refused():
    with pytest.raises(SmeltError) as caught:
        written(bounded(100_000, 200_000, 1_000_000))
    (error,) = caught.value.errors
    assert error.code == "E402"
    assert "between 100000000000 and 200000000000" in error.why


@pytest.mark.parametrize(
    ("model", "reported"),
    [
        (bounded(0, 100, 1_000_000), None),
        (bounded(0, 200_000, 1_000_000), {"y": "Mul"}),
        ("g (int64[3] x) => (int64[3] y) <int64 k = {3}> { y = Mul(x, k) }", {"y": "Mul"}),
        ("g (int32[3] x) => (int32[3] y) <int32 k = {3}> { y = Mul(x, k) }", None),
        ("g (int64[3] x) => (int64 y) { y = ReduceSum <keepdims = 0> (x) }", {"y": "ReduceSum"}),
        ("g (bool[3] x) => (int64[3] y) { c = Cast <to = 7> (x) y = Add(c, c) }", None),
        ("g (int64[3] x) => (int64[3] y) { y = Max(x, x) }", None),
    ],
)
def test_results_that_may_be_beyond_32_bits_are_reported(model, reported):
    assert written(model).report.get("may_overflow") == reported
