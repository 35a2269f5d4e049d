"""Other operands of a transposed one change layout without a Transpose."""

from __future__ import annotations

import pytest
from rewrites import check_same_numbers, run_pass

from smelt.ir import text
from smelt.passes.layout.reduce_transposes import reduce_transposes

TO, BACK = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
CONSTANTS = (
    "<float s = {0.1}, float[3] s3 = {0.1,0.2,0.3}, int8[3] z3 = {1,-2,0}, uint8 z = {100},"
    "int8[3,1,1] w = {1,-2,3}, int8[1,3,1,1] w4 = {1,-2,3}, int8[5] v = {1,2,3,4,5},"
    "uint8[4,5] m = {1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0}>"
)

# reads t, [N,3,4,5], and one of the inputs k, r
CHANGED = {
    "one element": ("float[1]", "r = Mul(t, k)"),
    "one element of four dims": ("float[1,1,1,1]", "r = Mul(k, t)"),
    "a row": ("float[5]", "r = Add(t, k)"),
    "a row of unknown size": ("float[K]", "r = Add(t, k)"),
    "channels": ("float[3,1,1]", "r = Add(t, k)"),
    "channels of each sample": ("float[N,3,1,1]", "r = Mul(k, t)"),
    "an image": ("float[4,5]", "r = Sub(k, t)"),
    "of each sample": ("float[N,1,1,1]", "r = Div(t, k)"),
    "a slope": ("float[3,1,1]", "r = PRelu(t, k)"),
    "a condition": ("bool[4,1]", "r = Where(k, t, s)"),
    "among several": ("float[5]", "r = Max(t, k, s, t)"),
    "a bound that is not permuted": ("float", "r = Clip(t, k)"),
}


def check(dtype: str, body: str, transposes: int) -> None:
    whole = (
        f"g (float[N,4,5,3] x, {dtype} k) => (float[a,b,c,d] y) {CONSTANTS}"
        f"{{ t = {TO}(x) {body} y = {BACK}(r) }}"
    )
    sizes = whole.replace("K]", "5]")
    source, model = text.parse(whole, 21), text.parse(whole, 21)
    run_pass(reduce_transposes, model)
    assert [n.op_type for n in model.graph].count("Transpose") == transposes
    source, model = text.parse(sizes, 21), text.parse(sizes, 21)
    run_pass(reduce_transposes, model)
    check_same_numbers(source, model)


@pytest.mark.parametrize(("dtype", "body"), CHANGED.values(), ids=CHANGED.keys())
def test_moves_along(dtype: str, body: str) -> None:
    check(dtype, body, 0)


DEQUANTIZED = {
    "one scale": "c = DequantizeLinear(w, s) r = Add(t, c)",
    "one scale, four dims": "c = DequantizeLinear(w4, s) r = Mul(c, t)",
    "a scale a channel": "c = DequantizeLinear<axis=0>(w, s3, z3) r = Add(t, c)",
    "a scale a channel, four dims": "c = DequantizeLinear(w4, s3, z3) r = Add(t, c)",
    "a row": "c = DequantizeLinear(v, s) r = Add(t, c)",
    "a matrix": "c = DequantizeLinear(m, s, z) r = Mul(t, c)",
}


@pytest.mark.parametrize("body", DEQUANTIZED.values(), ids=DEQUANTIZED.keys())
def test_constants_stay_quantized(body: str) -> None:
    check("float", body, 0)
    model = text.parse(
        f"g (float[2,4,5,3] x) => (float[a,b,c,d] y) {CONSTANTS} {{ t = {TO}(x) {body} y = {BACK}(r) }}"
    )
    run_pass(reduce_transposes, model)
    assert "DequantizeLinear" in [n.op_type for n in model.graph]


KEPT = {
    "dims that would change their order": ("float[3,4,1]", "r = Add(t, k)"),
    "two sizes that are not known": ("float[J,K]", "r = Add(t, k)"),
    "an unknown rank": ("float", "n = Cast<to=7>(k) u = Expand(k, h) r = Add(t, u)"),
    "more dims than the Transpose": ("float[1,1,1,1,5]", "a = Add(t, k) r = Squeeze(a, h)"),
}


@pytest.mark.parametrize(("dtype", "body"), KEPT.values(), ids=KEPT.keys())
def test_keeps(dtype: str, body: str) -> None:
    graph = (
        f"g (float[N,4,5,3] x, {dtype} k, int64[{'1' if 'Squeeze' in body else 'R'}] h)"
        f" => (float[a,b,c,d] y) {{ t = {TO}(x) {body} y = {BACK}(r) }}"
    )
    model = text.parse(graph, 21)
    run_pass(reduce_transposes, model)
    assert [n.op_type for n in model.graph].count("Transpose") == 2
