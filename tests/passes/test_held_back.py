"""A rewrite that a policy holds back is a near miss, and runs where the policy allows it."""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest
from literals import literal
from rewrites import run_pass

from smelt.ir import text
from smelt.passes.base import Pass
from smelt.passes.products.offset_to_bias import offset_to_bias
from smelt.passes.quantize.int_op_canonicalization import int_op_canonicalization
from smelt.passes.quantize.nullify_redundant_quantization_zero_point import (
    nullify_redundant_quantization_zero_point as nullify,
)
from smelt.passes.simplify.const_elimination import const_elimination
from smelt.passes.simplify.divide_to_multiply import divide_to_multiply
from smelt.passes.simplify.select_optimization import select_optimization
from smelt.passes.tensors.fuse_onehot_matmul_to_gather import fuse_onehot_matmul_to_gather

GROUPS, FREE = {"keep_groups": True}, {"keep_groups": False}
PAIR = (
    "g (float[N] x) => (float[N] y) <float s = {0.5}, uint8 z = {128}>"
    "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }"
)
W = "{" + ",".join(["1"] * 24) + "}"
ROWS = "float[4] p = {1,2,3,4}, float[4] r = {5,6,7,8}, int64[2] n = {4,4}"
SPLIT = (
    "g (float[2,3] x) => (float[2,4] a, float[2,4] b)"
    f"<float[3,8] w = {W}, {ROWS}> {{ h = MatMul(x, w)  u, v = Split<axis=1>(h, n)"
    "  a = Add(u, p)  b = Add(v, r) }"
)
DEQUANTIZED = (
    "g (uint8[2,3] x) => (float[2,4] a, float[2,4] b)"
    f"<uint8[3,8] w = {W}, float s = {{0.5}}, {ROWS}>"
    "{ d = DequantizeLinear(x, s)  e = DequantizeLinear(w, s)  h = MatMul(d, e)"
    "  u, v = Split<axis=1>(h, n)  a = Add(u, p)  b = Add(v, r) }"
)


class Held(NamedTuple):
    """``graph`` stays under ``held``, and is rewritten under ``free`` (or ``other`` is)."""

    pass_: Pass
    graph: str
    held: dict[str, object]
    free: dict[str, object]
    reason: str
    other: str = ""


HELD = {
    "a zero point of 0": Held(
        nullify,
        "g (uint8[N] q) => (float[N] y) <float s = {0.5}, uint8 z = {0}>"
        "{ y = DequantizeLinear(q, s, z) }",
        GROUPS, FREE, "keep-groups",
    ),
    "a pair with a zero point of the middle": Held(nullify, PAIR, GROUPS, FREE, "keep-groups"),
    "a constant of the other sign": Held(
        nullify,
        "g (float[2] x) => (uint8[2] t, float[2] y) <uint8[2] q = {127, 129}, float s = {0.5},"
        "uint8 z = {128}, uint8 one = {1}>"
        "{ t = QuantizeLinear(x, s, one)  y = DequantizeLinear(q, s, z) }",
        GROUPS, FREE, "keep-groups",
    ),
    "a move of int8 in a group": Held(
        int_op_canonicalization,
        "g (float[2,3] x) => (float[3,2] y) <float s = {0.5}, int8 z = {0}>"
        "{ q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  t = Transpose(d)"
        "  u = QuantizeLinear(t, s, z)  y = DequantizeLinear(u, s, z) }",
        GROUPS, FREE, "to uint8",
    ),
    "an infinity under a mask": Held(
        select_optimization,
        "g (float[2] x) => (float[2] y) <bool[2] m = {1, 0},"
        f"float[2] i = {literal('float', -math.inf, -math.inf)}> {{ y = Where(m, x, i) }}",
        {"assume_finite": False}, {"assume_finite": True}, "--assume-finite",
    ),
    "a divisor of 3": Held(
        divide_to_multiply,
        "g (float[2] x) => (float[2] y) <float c = {3}> { y = Div(x, c) }",
        {"fast": False}, {"fast": True}, "--fast-math",
    ),
    "an index of any size": Held(
        fuse_onehot_matmul_to_gather,
        "g (int64[2] i) => (float[2,2] y)"
        "<int64 depth = {3}, float[2] v = {0, 1}, float[3,2] t = {1,2,3,4,5,6}>"
        "{ h = OneHot(i, depth, v)  y = MatMul(h, t) }",
        {}, {"assume_in_range": True}, "outside the table",
    ),
    "rows of a product of integers": Held(
        offset_to_bias, DEQUANTIZED, {}, {}, "as integers", other=SPLIT
    ),
    "a fold when the time is over": Held(
        const_elimination,
        "g () => (float[2] y) <float[2] a = {1, 2}> { y = Exp(a) }",
        {"seconds": -1e9}, {}, "for folding is reached",
    ),
}  # fmt: skip


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
def test_rewrites_that_a_policy_prevents_are_reported(held: Held) -> None:
    stats = run_pass(held.pass_, text.parse(held.graph, 21), **held.held)
    assert not stats.rewrites
    assert any(held.reason in why for _, why in stats.missed), stats.missed
    free = run_pass(held.pass_, text.parse(held.other or held.graph, 21), **held.free)
    assert free.rewrites
