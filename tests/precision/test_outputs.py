"""Which outputs an error can be measured on."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.precision.outputs import has_numbers

NAN, INF = np.float32(np.nan), np.float32(np.inf)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ([], False),
        ([np.zeros((0, 3), np.float32)], False),
        ([np.full(3, NAN), np.array([INF, -INF])], False),
        ([np.array([NAN, 1])], True),
        ([np.full(3, NAN), np.zeros(1, np.int64)], True),
        ([np.array([True])], True),
    ],
)
def test_an_error_needs_a_finite_number(arrays: list[np.ndarray], expected: bool) -> None:
    sample = {f"y{number}": array for number, array in enumerate(arrays)}
    assert has_numbers([sample]) == expected
