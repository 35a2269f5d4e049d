"""Kernels that read and write by index, or along an axis, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, random_inputs

GRAPHS = {
    "gather elements": "g (float[3,4] x, int64[3,2] i) => (float[3,2] y) { y = GatherElements<axis = 1>(x, i) }",
    "gather nd": "g (float[4,4,2] x, int64[3,2] i) => (float[3,2] y) { y = GatherND(x, i) }",
    "gather nd in batches": "g (float[2,4,3] x, int64[2,5,1] i) => (float[2,5,3] y) { y = GatherND<batch_dims = 1>(x, i) }",
    "scatter elements": "g (float[4,4] x, int64[1,4] i, float[1,4] u) => (float[4,4] y) { y = ScatterElements(x, i, u) }",
    "scatter elements in place": "g (float[4,4] x, int64[1,4] i, float[1,4] u) => (float[4,4] y) { t = Neg(x) s = ScatterElements(t, i, u) y = Neg(s) }",
    "scatter elements adding": 'g (float[4,4] x, int64[2,4] i, float[2,4] u) => (float[4,4] y) { y = ScatterElements<reduction = "add">(x, i, u) }',
    "scatter nd": "g (float[4,4,2] x, int64[1,2] i, float[1,2] u) => (float[4,4,2] y) { y = ScatterND(x, i, u) }",
    "scatter nd multiplying": 'g (float[4,2] x, int64[3,1] i, float[3,2] u) => (float[4,2] y) { y = ScatterND<reduction = "mul">(x, i, u) }',
    "scatter of itself": "g (float[4] x, int64[4] i) => (float[4] y) { t = Neg(x) s = ScatterElements(t, i, t) y = Neg(s) }",
    "one hot": "g (int64[3] x, float[2] v) => (float[3,5] y) { d = Constant<value_int = 5>() y = OneHot(x, d, v) }",
    "argmax": "g (float[3,7,2] x) => (int64[3,1,2] y) { y = ArgMax<axis = 1>(x) }",
    "argmin": "g (float[3,7] x) => (int64[3] y) { y = ArgMin<axis = -1, keepdims = 0>(x) }",
    "last argmax of integers": "g (int32[3,9] x) => (int64[3,1] y) { y = ArgMax<axis = 1, select_last_index = 1>(x) }",
    "hardmax": "g (float[3,7] x) => (float[3,7] y) { y = Hardmax(x) }",
    "running sum": "g (float[3,7,2] x) => (float[3,7,2] y) { a = Constant<value_int = 1>() y = CumSum(x, a) }",
    "running sum reversed": "g (float[3,7] x) => (float[3,7] y) { a = Constant<value_int = 1>() y = CumSum<reverse = 1, exclusive = 1>(x, a) }",
    "upper": "g (float[2,4,5] x) => (float[2,4,5] y) { y = Trilu(x) }",
    "lower": "g (int64[4,5] x) => (int64[4,5] y) { k = Constant<value_int = -1>() y = Trilu<upper = 0>(x, k) }",
    "lrn": "g (float[2,7,3,3] x) => (float[2,7,3,3] y) { y = LRN<size = 5>(x) }",
    "transposed convolution": "g (float[1,4,5,6] x, float[4,3,3,2] w, float[6] b) => (float[1,6,S,T] y) { y = ConvTranspose<group = 2, strides = [2,3], pads = [1,0,1,1]>(x, w, b) }",
    "lp pool": "g (float[1,2,6,6] x) => (float[1,2,S,T] y) { y = LpPool<kernel_shape = [2,2], p = 3>(x) }",
}
UNIQUE = np.array([2, 0, -1, 1])
"""Indices that are all different: what a write twice leaves is not defined."""


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    inputs = random_inputs(library.models[name].source)
    if name.startswith("scatter elements") or name == "scatter of itself":
        inputs[1] = np.broadcast_to(UNIQUE, inputs[1].shape).copy()
    library.check(name, inputs, rtol=1e-4, atol=1e-5)


def test_a_write_out_of_range_is_left_out() -> None:
    graph = (
        "g (float[3] x, int64[3] i, float[3] u) => (float[3] y) { y = ScatterElements(x, i, u) }"
    )
    library = Library({"g": graph})
    x, u = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert library.run("g", [x, np.array([99, -99, 1]), u])[0].tolist() == [0, 1, 0]


def test_nan_is_the_largest_element() -> None:
    library = Library({"g": "g (float[1,4] x) => (int64[1,1] y) { y = ArgMax<axis = 1>(x) }"})
    x = np.array([[1, np.nan, 3, np.nan]], np.float32)
    assert library.run("g", [x])[0].item() == 1
