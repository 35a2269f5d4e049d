"""A pass that may change the sign of a zero is not blamed for results that depend on that sign."""

from __future__ import annotations

import numpy as np
import pytest
import wrong_rules

import smelt
from smelt.check.zero_signs import give_zeros_one_sign, undetermined
from smelt.errors import Mismatch
from smelt.ir import text
from smelt.passes.base import exact_but_zero_sign, rule_pass
from smelt.passes.pipeline import Step
from smelt.runtime.runner import open_runner

ADD_ZERO = """
    g (float[B,4] x) => (float[B,4] y, int64[B] i) <float zero = {0}> {
        a = Add(x, zero) r = Reciprocal(a) y = Exp(r) i = ArgMax<axis=1, keepdims=0>(y)
    }
"""
X = np.float32([[-0.0, 1, 2, -3]])


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
def test_all_zeros_get_one_sign(negative: bool, dtype: str) -> None:
    model = text.parse(
        f"g ({dtype}[4] x, bool c) => ({dtype}[4] y, {dtype}[4] z) {{"
        " y = Relu(x) n = Neg(y) z = If(c) <"
        f"then_branch = t () => ({dtype}[4] t) {{ t = Abs(n) }},"
        f"else_branch = e () => ({dtype}[4] e) {{ e = Neg(n) }}> }}",
        23,
    )
    give_zeros_one_sign(model, negative=negative)
    x = np.asarray([-1, 0, 2, -0.0]).astype({"float": "f4", "float16": "f2", "double": "f8"}[dtype])
    for branch in (False, True):
        y, z = open_runner(model)(x, np.asarray(branch))
        for result in (y, z):
            assert (result == [0, 0, 2, 0]).all()
            assert (np.signbit(result) == [negative, negative, False, negative]).all()


def test_elements_that_hang_on_it_are_found() -> None:
    model = text.parse(ADD_ZERO, 23)
    outputs = open_runner(model)(X)
    [(y, i)] = undetermined(model, "auto", [((X,), outputs)])
    assert np.isinf(y).tolist() == [[True, False, False, False]]
    assert np.isinf(i).tolist() == [True]


@pytest.mark.parametrize("verify", ["each", "final"])
def test_a_pass_that_leaves_it_open_is_right(verify: str) -> None:
    source = text.parse(ADD_ZERO, 23)
    done = smelt.optimize(source, pipeline="noop-elimination", verify=verify)
    assert [node.op_type for node in done.graph] == ["Reciprocal", "Exp", "ArgMax"]


def test_errors_beyond_the_sign_of_zero_still_count() -> None:
    wrong = rule_pass("wrong", "Wrong.", [wrong_rules.drop_relu])
    lax = Step(type(wrong)(**{**wrong.__dict__, "exactness": exact_but_zero_sign("here")}))
    relu = "g (float[B,4] x) => (float[B,4] y, float[B,4] r) { r = Relu(x) y = Reciprocal(r) }"
    with pytest.raises(Mismatch):
        smelt.optimize(text.parse(relu, 23), pipeline=(lax,), verify="each")
