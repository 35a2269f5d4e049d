"""Normalizations in the spellings that exporters leave, and what only looks like one."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.fuse.fuse_layernorm_or_instancenorm import fuse_layernorm_or_instancenorm

CONSTANTS = (
    "<int64[1] last = {-1}, float eps = {1e-5}, float two = {2}, float one = {1}, float n = {4}, "
    "float zero = {0}, float half = {-0.5}, float quarter = {0.25}, float[4] w = {1,2,3,4}, "
    "float[1,1,4] w3 = {1,2,3,4}, float[4] b = {4,3,2,1}, int64[3] keep = {-1,2,1}>"
)
G = "g (float[B,2,4] x) => (float[B,2,4] y)"
FUSED = "y = LayerNormalization<axis=2, epsilon=1e-5>(x, w, b)"
MEAN = "m = ReduceMean(x, last) d = Sub(x, m)"
SPELLINGS = {
    "PyTorch": f"{MEAN} q = Pow(d, two) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(d, s)",
    "a product for the square": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(eps, v) s = Sqrt(e) z = Div(d, s)",
    "Reciprocal": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) r = Reciprocal(s) z = Mul(d, r)",
    "one over": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) r = Div(one, s) z = Mul(r, d)",
    "Pow to minus a half": f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) r = Pow(e, half) z = Mul(d, r)",
    "a second difference": f"{MEAN} d2 = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(d2, s)",
    "sums over n": (
        "t = ReduceSum(x, last) m = Div(t, n) d = Sub(x, m) q = Mul(d, d) u = ReduceSum(q, last) "
        "v = Mul(u, quarter) e = Add(v, eps) s = Sqrt(e) z = Div(d, s)"
    ),
    "flax": (
        "t = ReduceSum<keepdims=0>(x, last) m = Div(t, n) r1 = Reshape(m, keep) d = Sub(x, r1) q = Mul(x, x) "
        "u = ReduceSum<keepdims=0>(q, last) f = Div(u, n) g = Mul(m, m) h = Sub(f, g) v = Max(zero, h) "
        "r2 = Unsqueeze(v, last) e = Add(r2, eps) s = Sqrt(e) r = Reciprocal(s) z = Mul(d, r)"
    ),
}


@pytest.mark.parametrize("body", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_every_spelling_with_scale_and_bias(body: str) -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {body} k = Mul(z, w) y = Add(k, b) }}",
        f"{G} {CONSTANTS} {{ {FUSED} }}",
        rtol=1e-3,
        atol=1e-4,
        modes=("normal",),
    )


def test_a_scale_inside_the_product() -> None:
    body = SPELLINGS["Reciprocal"].replace("z = Mul(d, r)", "k = Mul(r, w3) z = Mul(d, k)")
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {body} y = Add(z, b) }}",
        f"{G} {CONSTANTS} {{ {FUSED} }}",
        rtol=1e-3,
        atol=1e-4,
        modes=("normal",),
    )


def test_without_scale_the_scale_is_ones() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {SPELLINGS['PyTorch']} y = Neg(z) }}",
        f"{G} <float[4] o = {{1,1,1,1}}> {{ z = LayerNormalization<axis=2, epsilon=1e-5>(x, o) y = Neg(z) }}",
        rtol=1e-3,
        atol=1e-4,
        modes=("normal",),
    )


def test_rms_norm_from_opset_23() -> None:
    body = "q = Mul(x, x) v = ReduceMean(q, last) e = Add(v, eps) s = Sqrt(e) z = Div(x, s) y = Mul(z, w)"
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"{G} {CONSTANTS} {{ {body} }}",
        f"{G} {CONSTANTS} {{ y = RMSNormalization<axis=2, epsilon=1e-5>(x, w) }}",
        compare=False,
    )
    check_unchanged(fuse_layernorm_or_instancenorm, f"{G} {CONSTANTS} {{ {body} }}", opset=22)


def test_a_tiny_epsilon_survives() -> None:
    tiny = CONSTANTS.replace("1e-5", "1e-12")
    model = text.parse(f"{G} {tiny} {{ {SPELLINGS['PyTorch']} y = Neg(z) }}")
    run_pass(fuse_layernorm_or_instancenorm, model)
    [norm] = [node for node in model.graph if node.op_type == "LayerNormalization"]
    assert 0.9e-12 < norm.attributes["epsilon"].as_float() < 1.1e-12


KEPT = {
    "another axis": SPELLINGS["PyTorch"].replace("last", "keep1"),
    "the variance of something else": SPELLINGS["PyTorch"].replace("Pow(d, two)", "Pow(x, two)"),
    "a cube": SPELLINGS["PyTorch"].replace("Pow(d, two)", "Pow(d, n)"),
    "a sum over another n": SPELLINGS["sums over n"].replace("Mul(u, quarter)", "Mul(u, two)"),
    "no root": SPELLINGS["PyTorch"].replace("Sqrt", "Exp"),
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    constants = CONSTANTS.replace(">", ", int64[1] keep1 = {1}>")
    check_unchanged(fuse_layernorm_or_instancenorm, f"{G} {constants} {{ {body} y = Neg(z) }}")


def test_keeps_a_deviation_that_is_an_output() -> None:
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"g (float[B,2,4] x) => (float[B,2,4] y, float[B,2,1] s) {CONSTANTS} {{ {SPELLINGS['PyTorch']} y = Neg(z) }}",
    )


def test_keeps_below_opset_17() -> None:
    body = SPELLINGS["PyTorch"].replace("ReduceMean(x, last)", "ReduceMean<axes=[-1]>(x)")
    body = body.replace("ReduceMean(q, last)", "ReduceMean<axes=[-1]>(q)")
    check_unchanged(
        fuse_layernorm_or_instancenorm, f"{G} {CONSTANTS} {{ {body} y = Neg(z) }}", opset=16
    )
