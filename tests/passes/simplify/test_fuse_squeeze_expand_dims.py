"""Squeezes and Unsqueezes that cancel."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.fuse_squeeze_expand_dims import fuse_squeeze_expand_dims

AXES = "<int64[2] p = {1,3}, int64[2] q = {-1,1}, int64[1] one = {1}, int64[1] last = {-1}>"
X = "float[N,1,S,1] x"
DROPPED = {
    "the same axes": "a = Squeeze(x, p) b = Unsqueeze(a, p)",
    "the same axes, counted from the end": "a = Squeeze(x, p) b = Unsqueeze(a, q)",
    "the last axis, of either rank": "a = Squeeze(x, last) b = Unsqueeze(a, last)",
    "wider and back": "k = Constant<value_ints=[-3,1]>() a = Unsqueeze(x, p) b = Squeeze(a, k)",
    "several times": "c = Squeeze(x, p) a = Unsqueeze(c, one) d = Squeeze(a, one) b = Unsqueeze(d, p)",
}


@pytest.mark.parametrize("body", DROPPED.values(), ids=DROPPED.keys())
def test_drops(body: str) -> None:
    check_rewrite(
        fuse_squeeze_expand_dims,
        f"g ({X}) => (float[N,1,S,1] y) {AXES} {{ {body} y = Neg(b) }}",
        f"g ({X}) => (float[N,1,S,1] y) {{ y = Neg(x) }}",
    )


@pytest.mark.parametrize("first", ["Squeeze(x)", "Squeeze<axes=[0,2]>(x)"])
def test_axes_that_are_attributes_or_absent(first: str) -> None:
    check_rewrite(
        fuse_squeeze_expand_dims,
        f"g (float[1,3,1] x) => (float[1,3,1] y) {{ a = {first} b = Unsqueeze<axes=[0,2]>(a) y = Neg(b) }}",
        "g (float[1,3,1] x) => (float[1,3,1] y) { y = Neg(x) }",
        opset=11,
    )


def test_without_a_rank() -> None:
    body = "h = Constant<value_ints=[-2,1]>() a = Squeeze(x, h) b = Unsqueeze(a, h) y = Neg(b)"
    check_rewrite(
        fuse_squeeze_expand_dims,
        f"g (float x0, int64[r] s) => (y) {{ x = Expand(x0, s) {body} }}",
        "g (float x0, int64[r] s) => (y) { x = Expand(x0, s) y = Neg(x) }",
        feeds={"x0": np.float32(2), "s": np.array([2, 1, 1, 3])},
    )


def test_a_squeeze_with_other_readers_stays() -> None:
    outputs = "(float[N,1,S,1] y, float[N,S] a)"
    check_rewrite(
        fuse_squeeze_expand_dims,
        f"g ({X}) => {outputs} {AXES} {{ a = Squeeze(x, p) b = Unsqueeze(a, p) y = Neg(b) }}",
        f"g ({X}) => {outputs} {AXES} {{ a = Squeeze(x, p) y = Neg(x) }}",
    )


def test_an_output_keeps_its_name() -> None:
    check_rewrite(
        fuse_squeeze_expand_dims,
        f"g ({X}) => (float[N,1,S,1] y) {AXES} {{ a = Squeeze(x, p) y = Unsqueeze(a, p) }}",
        f"g ({X}) => (float[N,1,S,1] y) {{ y = Identity(x) }}",
    )


KEPT = {
    "a 1 that moves": f"g ({X}) => (float[N,S,1,1] y) {AXES} "
    "{ a = Squeeze(x, p) k = Constant<value_ints=[2,3]>() y = Unsqueeze(a, k) }",
    "fewer axes": f"g ({X}) => (float[N,1,S] y) {AXES} {{ a = Squeeze(x, p) y = Unsqueeze(a, one) }}",
    "no axes, and a dim that may be 1": "g (float[N,1] x) => (y) { a = Squeeze(x) "
    "k = Constant<value_ints=[1]>() y = Unsqueeze(a, k) }",
    "axes that only the caller knows": "g (float[N,1] x, int64[1] k) => (y) "
    "{ a = Squeeze(x, k) y = Unsqueeze(a, k) }",
    "axes from different ends, without a rank": "g (float x0, int64[r] s) => (y) "
    "{ x = Expand(x0, s) h = Constant<value_ints=[0]>() k = Constant<value_ints=[-2]>() "
    "a = Squeeze(x, h) y = Unsqueeze(a, k) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(fuse_squeeze_expand_dims, graph)
