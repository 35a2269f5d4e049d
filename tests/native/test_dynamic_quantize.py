"""DynamicQuantizeLinear in C: the bits of ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, ops
from native.test_quantized_conv import BUILDS, skip_what_lacks

from smelt.runtime.onnxruntime import OnnxRuntime

SIZES = (0, 1, 7, 16, 333)
GIVEN = {
    "around 0": lambda x: x,
    "positive": lambda x: np.abs(x) + 1,
    "negative": lambda x: -np.abs(x) - 1,
    "zeros": np.zeros_like,
    "one far away": lambda x: np.where(np.arange(x.size) == x.size - 1, np.float32(-77), x),
}


@pytest.fixture(scope="module", params=BUILDS.values(), ids=BUILDS.keys())
def library(request: pytest.FixtureRequest) -> Library:
    skip_what_lacks(request.param)
    graphs = {
        str(n): f"g (float[{n}] x) => (uint8[{n}] y, float s, uint8 z) "
        "{ y, s, z = DynamicQuantizeLinear(x) }"
        for n in SIZES
    }
    return Library(graphs, flags=request.param)


@pytest.mark.parametrize("name", GIVEN)
@pytest.mark.parametrize("n", SIZES[1:])
def test_the_bits_are_those_of_onnx_runtime(library: Library, n: int, name: str) -> None:
    x = np.asarray(GIVEN[name](np.random.default_rng(n).normal(0, 3, n)), np.float32)
    for got, want in zip(
        library.run(str(n), [x]), OnnxRuntime(library.models[str(n)].source)(x), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    assert ops(library.models[str(n)].artifact) == ["DynamicQuantizeLinear"]


def test_nothing_has_a_scale_of_1(library: Library) -> None:
    y, scale, zero = library.run("0", [np.zeros(0, np.float32)])
    assert (y.size, scale, zero) == (0, 1, 0)
