"""The rows that a nearest Resize reads are those of ONNX Runtime, also where rounding decides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from smelt.ir import text
from smelt.program.resampling import Sampling, taps
from smelt.runtime.onnxruntime import OnnxRuntime

MODES = ["half_pixel", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
SIZES = [(7, 2), (14, 19), (22, 13), (14, 1), (20, 6), (11, 26), (3, 1), (3, 11), (7, 31), (25, 15)]
"""Sizes before and after at which a coordinate is within 1e-6 of the middle of two rows or of a
row."""


@pytest.mark.parametrize(("mode", "rounding"), [*itertools.product(MODES, ROUNDINGS)])
def test_nearest_rows_are_those_of_the_runtime(mode: str, rounding: str) -> None:
    attributes = f'mode="nearest", coordinate_transformation_mode="{mode}"'
    run = OnnxRuntime(
        text.parse(
            "g (float[N] x, int64[1] sizes) => (float[M] y)"
            f'{{ y = Resize<{attributes}, nearest_mode="{rounding}">(x, , , sizes) }}',
            19,
        )
    )
    sampling = Sampling("nearest", mode, rounding, -0.75, False, False, None, 0, 1, 0)
    for size, count in SIZES:
        rows = np.arange(size, dtype=np.float32)
        (expected,) = run(rows, np.array([count]))
        np.testing.assert_array_equal(taps(sampling, size, count).rows[:, 0], expected)
