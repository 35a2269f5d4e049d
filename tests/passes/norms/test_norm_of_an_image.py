"""A norm over the image of each channel whose scale and bias have the shape of the image."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.norms.fuse_layernorm_or_instancenorm import fuse_layernorm_or_instancenorm

X, Y = "float[B,3,2,2] x", "float[B,3,2,2] y"
CONSTANTS = (
    "int64[2] axes = {2,3}, float e = {0.00001}, float[2,2] w = {1,2,3,4}, "
    "float[1,1,2,2] b = {4,3,2,1}"
)
NORM = (
    "m = ReduceMean<keepdims=1>(x, axes) d = Sub(x, m) q = Mul(d, d) "
    "v = ReduceMean<keepdims=1>(q, axes) p = Add(v, e) r = Sqrt(p) z = Div(d, r)"
)
LAYER = "LayerNormalization<axis=2, epsilon=1e-5>"


@pytest.mark.parametrize("opset", [18, 23])
def test_scale_and_bias(opset: int) -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g ({X}) => ({Y}) <{CONSTANTS}> {{ {NORM} k = Mul(z, w) y = Add(k, b) }}",
        f"g ({X}) => ({Y}) <float[2,2] w = {{1,2,3,4}}, float[2,2] b = {{4,3,2,1}}> "
        f"{{ y = {LAYER}(x, w, b) }}",
        opset=opset,
        modes=("normal",),
    )


def test_a_scale() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g ({X}) => ({Y}) <{CONSTANTS}> {{ {NORM} y = Mul(w, z) }}",
        f"g ({X}) => ({Y}) <float[2,2] w = {{1,2,3,4}}> {{ y = {LAYER}(x, w) }}",
        modes=("normal",),
    )


def test_a_scale_along_one_axis() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g ({X}) => ({Y}) <{CONSTANTS}, float[2] s = {{1,2}}> {{ {NORM} y = Mul(s, z) }}",
        f"g ({X}) => ({Y}) <float[2,2] w = {{1,2,1,2}}> {{ y = {LAYER}(x, w) }}",
        modes=("normal",),
    )


def test_a_bias() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g ({X}) => ({Y}) <{CONSTANTS}> {{ {NORM} y = Add(z, b) }}",
        f"g ({X}) => ({Y}) <float[2,2] o = {{1,1,1,1}}, float[2,2] b = {{4,3,2,1}}> "
        f"{{ y = {LAYER}(x, o, b) }}",
        modes=("normal",),
    )


def test_of_the_caller() -> None:
    given = f"{X}, float[2,2] w, float[2,2] b"
    constants = "int64[2] axes = {2,3}, float e = {0.00001}"
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g ({given}) => ({Y}) <{constants}> {{ {NORM} k = Mul(z, w) y = Add(k, b) }}",
        f"g ({given}) => ({Y}) {{ y = {LAYER}(x, w, b) }}",
        modes=("normal",),
    )


def test_a_number_for_each_channel_stays_with_the_channels() -> None:
    check_rewrite(
        fuse_layernorm_or_instancenorm,
        f"g ({X}) => ({Y}) <{CONSTANTS}, float[3,1,1] s = {{1,2,3}}> {{ {NORM} y = Mul(s, z) }}",
        f"g ({X}) => ({Y}) <float[3] s = {{1,2,3}}, float[3] o = {{0,0,0}}> "
        "{ y = InstanceNormalization<epsilon=1e-5>(x, s, o) }",
        modes=("normal",),
    )


PLAIN = "float[3] o = {1,1,1}, float[3] n = {0,0,0}"
INSTANCE = "z = InstanceNormalization(x, o, n)"
KEPT = {
    "a scale of channels and image": f"g ({X}) => ({Y}) <{PLAIN}, float[3,2,2] s = "
    f"{{1,2,3,4,5,6,7,8,9,10,11,12}}> {{ {INSTANCE} y = Mul(z, s) }}",
    "a scale of the channels before": f"g ({X}) => ({Y}) <float[3] o = {{1,2,3}}, "
    f"float[3] n = {{0,0,0}}, float[2,2] w = {{1,2,3,4}}> {{ {INSTANCE} y = Mul(z, w) }}",
    "a bias behind a scale of the channels": f"g ({X}) => ({Y}) <float[3] o = {{1,2,3}}, "
    f"float[3] n = {{0,0,0}}, float[2,2] w = {{1,2,3,4}}> {{ {INSTANCE} y = Add(z, w) }}",
    "sizes that are not known": "g (float[B,3,H,W] x, float[H,W] w) => (float[B,3,H,W] y) "
    f"<{PLAIN}> {{ {INSTANCE} y = Mul(z, w) }}",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_layernorm_or_instancenorm, source)


def test_keeps_before_opset_17() -> None:
    check_unchanged(
        fuse_layernorm_or_instancenorm,
        f"g ({X}) => ({Y}) <{PLAIN}, float[2,2] w = {{1,2,3,4}}> {{ {INSTANCE} y = Mul(z, w) }}",
        opset=16,
    )
