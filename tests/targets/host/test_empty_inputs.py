"""Inputs that are empty in some runs, although the model does not say so."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime

HEAD = "g (float[P,4] x, float[1,4] w) => "
CONSTANTS = "<int64[1] z = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, "
MODELS = {
    "at least one row and one more": (
        "(float[Q] y) ", "n = Shape<end=1>(x) m = Max(n, one) k = Add(m, one) y = ConstantOfShape(k)"
    ),
    "rows but the first": (
        "(float[Q,4] y) ", "t = Slice(x, one, far, z) y = Concat<axis=0>(t, w)"
    ),
    "the last row": (
        "(float[Q,4] y) ", "n = Shape<end=1>(x) s = Sub(n, one) y = Slice(x, s, far, z)"
    ),
    "one row if there is any": (
        "(float[Q,4] y) ", "n = Shape<end=1>(x) m = Min(n, one) k = Concat<axis=0>(m, four) "
        "e = Expand(w, k) y = Concat<axis=0>(e, x)"
    ),
    "rows but the first, and others behind": (
        "(float[Q,4] y) ", "p = Concat<axis=0>(less, z, five, z) y = Pad(x, p)"
    ),
    "twice as many as at least one": (
        "(float[Q,4] y) ", "n = Shape<end=1>(x) m = Max(n, one) t = Mul(m, two) "
        "k = Concat<axis=0>(t, four) y = Expand(w, k)"
    ),
    "places behind rows but the first": (
        "(float[Q,4] y, int64[R] i) ", "t = Slice(x, one, far, z) y = Concat<axis=0>(w, t, w) "
        "s = Shape<end=1>(y) e = Squeeze(s) o = Squeeze(one) n = Squeeze(z) i = Range(n, e, o)"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_sizes_from_zero_on(name: str) -> None:
    outputs, body = MODELS[name]
    far = "int64[1] less = {-1}, int64[1] five = {5}, int64[1] far = {9223372036854775807}>"
    model = text.parse(f"{HEAD}{outputs}{CONSTANTS}{far} {{ {body} }}", 21)
    source = OnnxRuntime(model)
    better = OnnxRuntime(smelt.optimize(model))
    compiled = smelt.compile(model, target="host", engine="numpy")
    for size in (0, 1, 2, 5):
        x = np.arange(4 * size, dtype=np.float32).reshape(size, 4)
        inputs = [x, np.ones((1, 4), np.float32)]
        wanted = source(*inputs)
        for found in (better(*inputs), compiled(*inputs)):
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_maximum_over_an_empty_axis_is_refused() -> None:
    graph = "g (float[N,M] x) => (int64[N] y) { y = ArgMax<axis=1, keepdims=0>(x) }"
    model = text.parse(graph, 21)
    compiled = smelt.compile(model, target="host", engine="numpy")
    (found,) = compiled(np.zeros((0, 0), np.float32))
    assert found.shape == (0,)
    with pytest.raises(UsageError, match="E670"):
        compiled(np.zeros((2, 0), np.float32))
