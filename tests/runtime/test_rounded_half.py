"""Models that compute in float16 round each result, so that overflow is noticed."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.runtime.rounded_half import round_each_half
from smelt.runtime.runner import open_runner

H = np.float16
SOFTENED = (
    "g (float16[2,2] x, float16 k) => (float16[2,2] y)"
    " { a = Mul(x, k) b = Mul(a, k) c = Div(b, k) y = Div(c, k) }"
)
RUNS = {
    "overflow": (SOFTENED, [np.ones((2, 2), H), H(300)], np.full((2, 2), np.inf)),
    "no overflow": (SOFTENED, [np.full((2, 2), 0.5, H), H(300)], np.full((2, 2), 0.5)),
    "a result that is read and returned": (
        "g (float16[1] x) => (float16[1] y, float16[1] z) { y = Mul(x, x) z = Mul(y, y) }",
        [np.array([2049], H)],
        np.array([np.inf]),
    ),
    "a branch": (
        "g (float16[1] x, bool c) => (float16[1] y) { y = If (c)"
        " <then_branch = t () => (float16[1] a) { a = Mul(x, x) },"
        " else_branch = e () => (float16[1] b) { b = Add(x, x) }> }",
        [np.array([300], H), np.array(True)],
        np.array([np.inf]),
    ),
    "float32 beside it": (
        "g (float[1] x) => (float[1] y) { y = Mul(x, x) }",
        [np.array([300], np.float32)],
        np.array([90000]),
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_results_are_rounded(name):
    model, inputs, expected = RUNS[name]
    found = open_runner(round_each_half(text.parse(model)))(*inputs)
    np.testing.assert_array_equal(found[0], expected)


MEAN = (
    "g (float[B,4] x) => (float[B,4] y) <float k = {3000.0}, float s = {4e-7}>"
    " { a = Mul(x, k) b = Mul(a, a) r = Sqrt(b) y = Mul(r, s) }"
)


@pytest.mark.parametrize(("precision", "ok"), [("fp32", True), ("fp16", False)])
def test_overflow_of_a_package_fails_its_verification(precision, ok, tmp_path):
    model = text.parse(MEAN)
    artifact = smelt.compile(model, target="coreml", dims={"B": (1, 4)}, precision=precision)
    artifact.save(tmp_path / "m.mlpackage")
    assert smelt.verify(model, str(tmp_path / "m.mlpackage"), dims={"B": 2}).ok is ok
    assert smelt.verify(model, artifact, dims={"B": 2}).ok is ok
