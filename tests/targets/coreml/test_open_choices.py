"""Where with operands that broadcast to open sizes, which Core ML infers from two of them only."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, outside, types, written

from smelt.ir import text
from smelt.runtime.runner import open_runner

CASES = {
    "a constant for both values": (
        "g (bool[B,1,1,L] c, float[1,4,D,L] a) => (float[B,4,D,L] y) <float z = {-3}> { y = Where(c, a, z) }",
        ((2, 1, 1, 3), (1, 4, 5, 3)),
    ),
    "a constant vector": (
        "g (bool[B,1,1,L] c, float[1,4,D,L] a) => (float[B,4,D,L] y) <float[4,1,1] z = {-0.0, 2, 3, 4}> { y = Where(c, z, a) }",
        ((2, 1, 1, 3), (1, 4, 5, 3)),
    ),
    "integers": (
        "g (bool[B,1,1,L] c, int64[1,4,D,1] a, int64[1,4,1,1] b) => (int64[B,4,D,L] y) { y = Where(c, b, a) }",
        ((2, 1, 1, 3), (1, 4, 5, 1), (1, 4, 1, 1)),
    ),
    "bools": (
        "g (bool[B,1] c, bool[L] a, bool[1] b) => (bool[B,L] y) { y = Where(c, b, a) }",
        ((2, 1), (3,), (1,)),
    ),
    "a lower rank": (
        "g (bool[1,B,L] c, float[L] a, float[1] b) => (float[1,B,L] y) { y = Where(c, b, a) }",
        ((1, 2, 3), (3,), (1,)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_package_agrees(case):
    source, shapes = CASES[case]
    model, draw = text.parse(source), np.random.default_rng(0)
    artifact = written(source, dims=dict.fromkeys("BLD" if "D" in source else "BL", (1, 6)))
    for sizes in (shapes, [[1 if size < 4 else size for size in shape] for shape in shapes]):
        drawn = [draw.integers(-5, 5, size) for size in sizes]
        inputs = [
            each > 0 if value.dtype.name == "BOOL" else -np.abs(each.astype(value.dtype.numpy()))
            for value, each in zip(model.graph.inputs, drawn, strict=True)
        ]
        (found,), (expected,) = computed(artifact, *inputs), open_runner(model)(*inputs)
        np.testing.assert_array_equal(found, outside(expected))
        assert (np.signbit(found) == np.signbit(outside(expected))).all()


def test_sizes_that_both_values_have_are_not_computed():
    model = "g (bool[B,L] c, float[B,1] a, float[1,L] b) => (float[B,L] y) { y = Where(c, b, a) }"
    assert types(written(model, dims=dict.fromkeys("BL", (1, 6)))) == ["not_equal", "select"]
