"""Masks of scores whose numbers exceed float16: they are clamped, and others are refused."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import computed, types, written

from smelt.errors import ErrorList
from smelt.runtime.runner import open_runner

MODEL = """g ({mask}[2,4] m, float[2,3,4] s) => (float[2,3,4] y{outputs})
<float one = {{1}}, float low = {{-{number}}}, float high = {{{number}}}, float zero = {{0}},
float two = {{2}}, float[1,1,4] row = {{0, 0, 0, -{number}}}, int64[1] axis = {{1}}, int64[1] last = {{-1}}, int64[1] end = {{-5}}>
{{ u = Unsqueeze(m, axis) f = Cast <to = 1> (u) {body} }}"""
CLAMPED = {
    "(1 - m) * low": "i = Sub(one, f) b = Mul(i, low) z = Add(s, b) y = Softmax(z)",
    "(m - 1) * high": "i = Sub(f, one) b = Mul(high, i) z = Add(b, s) y = Softmax(z)",
    "a product is subtracted": "i = Sub(one, f) b = Mul(i, high) z = Sub(s, b) y = Softmax(z)",
    "m * low": "b = Mul(f, low) z = Add(s, b) y = Softmax(z)",
    "the product is moved": "i = Sub(one, f) p = Mul(i, low) b = Squeeze(p, axis)"
    " q = Unsqueeze(b, axis) z = Sum(s, q) y = LogSoftmax(z)",
    "the product is reversed": "i = Sub(one, f) p = Mul(i, low) b = Slice(p, last, end, last, last)"
    " z = Add(s, b) y = Softmax(z)",
    "two readers": "i = Sub(one, f) b = Mul(i, low) z = Add(s, b) v = Add(z, f)"
    " p = Softmax(z) q = Softmax(v) y = Add(p, q)",
    "a choice": "c = Cast <to = 9> (u) z = Where(c, s, low) y = Softmax(z)",
    "a choice that is added": "c = Cast <to = 9> (u) b = Where(c, zero, low) z = Add(s, b)"
    " y = Softmax(z)",
    "a constant": "t = Add(s, f) z = Add(t, row) y = Softmax(z)",
}
REFUSED = {
    "the sum is an output": ("i = Sub(one, f) b = Mul(i, low) y = Add(s, b)", ""),
    "the product is an output": (
        "i = Sub(one, f) b = Mul(i, low) z = Add(s, b) y = Softmax(z)",
        ", float[2,1,4] b",
    ),
    "nothing is added": ("b = Mul(f, low) e = Softmax(b) y = Add(s, e)", ""),
    "another reader": (
        "i = Sub(one, f) b = Mul(i, low) z = Add(s, b) p = Softmax(z) y = Add(p, b)",
        "",
    ),
    "the difference from 2": ("i = Sub(two, f) b = Mul(i, low) z = Add(s, b) y = Softmax(z)", ""),
    "a computed factor": ("i = Exp(f) b = Mul(i, low) z = Add(s, b) y = Softmax(z)", ""),
    "scores are scaled": (
        "i = Sub(one, f) b = Mul(i, low) z = Add(s, b) d = Div(z, two) y = Softmax(d)",
        "",
    ),
}


def model(body: str, number: str = "1e9", mask: str = "int64", outputs: str = "") -> str:
    return MODEL.format(body=body, number=number, mask=mask, outputs=outputs)


@pytest.mark.parametrize("case", CLAMPED)
def test_masks_are_clamped(case):
    for number, mask in (("1e9", "int64"), ("70000", "float"), ("3.4e38", "bool")):
        source = model(CLAMPED[case], number, mask)
        artifact = written(source, precision="fp16")
        assert artifact.plan.facts["clamped"]
        kept = np.array([[1, 1, 0, 0], [1, 0, 1, 1]])
        scores = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
        given = kept.astype({"int64": np.int64, "float": np.float32, "bool": bool}[mask]), scores
        (found,), (expected,) = computed(artifact, *given), open_runner(artifact.model)(*given)
        near = np.abs(expected) < 100
        np.testing.assert_allclose(found[near], expected[near], atol=4e-3)
        assert (np.abs(found[~near]) > 1e4).all()
        hidden = np.zeros_like(given[0]), scores
        assert np.isfinite(computed(artifact, *hidden)[0]).all()


@pytest.mark.parametrize("case", REFUSED)
def test_other_large_numbers_are_refused(case):
    body, outputs = REFUSED[case]
    with pytest.raises(ErrorList) as caught:
        written(model(body, outputs=outputs), precision="fp16")
    assert {error.code for error in caught.value.errors} == {"E406"}
    assert types(written(model(body, outputs=outputs), precision="fp32"))


def test_a_soft_mask_keeps_its_product_up_to_the_clamp():
    source = model(CLAMPED["(1 - m) * low"], "1e5", "float")
    given = np.full((2, 4), 1 - 2**-11, np.float32), np.full((2, 3, 4), 1e5 * 2**-11, np.float32)
    given[0][:, 0], given[1][:, :, 0] = 1, 0
    (found,) = computed(written(source, precision="fp16"), *given)
    np.testing.assert_allclose(found, np.full((2, 3, 4), 0.25), atol=4e-3)


def test_one_constant_in_a_mask_and_elsewhere():
    body = "i = Sub(one, f) b = Mul(i, low) z = Add(s, b) p = Softmax(z) y = Mul(p, low)"
    with pytest.raises(ErrorList) as caught:
        written(model(body), precision="fp16")
    assert [error.code for error in caught.value.errors] == ["E406"]
