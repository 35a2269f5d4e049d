"""Common subexpressions are computed once; similar nodes stay."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.remove_redundant_ops import remove_redundant_ops

MERGED = {
    "equal nodes": (
        "g (float[4] x) => (float[4] y) { a = Relu(x) b = Relu(x) y = Add(a, b) }",
        "g (float[4] x) => (float[4] y) { a = Relu(x) y = Add(a, a) }",
    ),
    "a tree of them": (
        "g (float[4] x) => (float[4] y) { a = Exp(x) b = Exp(x) c = Neg(a) d = Neg(b) y = Add(c, d) }",
        "g (float[4] x) => (float[4] y) { a = Exp(x) c = Neg(a) y = Add(c, c) }",
    ),
    "operands in another order": (
        "g (float[4] x, float[4] z) => (float[4] y) { a = Add(x, z) b = Add(z, x) y = Mul(a, b) }",
        "g (float[4] x, float[4] z) => (float[4] y) { a = Add(x, z) y = Mul(a, a) }",
    ),
    "operands of Max in another order, whose zeros may differ": (
        "g (float[4] x, float[4] z) => (float[8] y) { a = Max(x, z) b = Max(z, x) y = Concat<axis=0>(a, b) }",
        "g (float[4] x, float[4] z) => (float[8] y) { a = Max(x, z) y = Concat<axis=0>(a, a) }",
    ),
    "constants that hold the same": (
        "g (float[4] x) => (float[4] y) <float[1] k = {2}, float[1] l = {2}> { a = Mul(x, k) b = Mul(x, l) y = Add(a, b) }",
        "g (float[4] x) => (float[4] y) <float[1] k = {2}> { a = Mul(x, k) y = Add(a, a) }",
    ),
    "one is an output": (
        "g (float[4] x) => (float[4] y, float[4] b) { a = Relu(x) b = Relu(x) y = Neg(a) }",
        "g (float[4] x) => (float[4] y, float[4] b) { b = Relu(x) y = Neg(b) }",
    ),
    "both are outputs": (
        "g (float[4] x) => (float[4] a, float[4] b) { a = Relu(x) b = Relu(x) }",
        "g (float[4] x) => (float[4] a, float[4] b) { a = Relu(x) b = Identity(a) }",
    ),
    "several results": (
        "g (float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x) c, d = Split<num_outputs=2>(x) y = Add(a, d) }",
        "g (float[4] x) => (float[2] y) { a, b = Split<num_outputs=2>(x) y = Add(a, b) }",
    ),
    "a branch repeats what stands outside": (
        "g (float[4] x, bool c) => (float[4] y) { r = Relu(x) n = Neg(r) z = If(c) <"
        "then_branch = t () => (float[4] t) { q = Relu(x) t = Exp(q) },"
        "else_branch = e () => (float[4] e) { e = Abs(r) }> y = Add(z, n) }",
        "g (float[4] x, bool c) => (float[4] y) { r = Relu(x) n = Neg(r) z = If(c) <"
        "then_branch = t () => (float[4] t) { t = Exp(r) },"
        "else_branch = e () => (float[4] e) { e = Abs(r) }> y = Add(z, n) }",
    ),
    "what a branch computes of what it dequantizes": (
        "g (uint8[4] x, bool c) => (float[4] y) <float s = {0.5}>"
        "{ a = DequantizeLinear(x, s) z = Neg(a) n = If(c) <"
        "then_branch = t () => (float[4] t) { b = DequantizeLinear(x, s) r = Neg(b) t = Exp(r) },"
        "else_branch = e () => (float[4] e) { e = Abs(z) }> y = Add(z, n) }",
        "g (uint8[4] x, bool c) => (float[4] y) <float s = {0.5}>"
        "{ a = DequantizeLinear(x, s) z = Neg(a) n = If(c) <"
        "then_branch = t () => (float[4] t) { t = Exp(z) },"
        "else_branch = e () => (float[4] e) { e = Abs(z) }> y = Add(z, n) }",
    ),
    "in two branches, after what both do was done outside, where it is gone": (
        "g (float[N,4] x, bool c) => (int64[1] o, int64[1] y) {"
        "p = Shape<start=0, end=1>(x) u = Neg(p) q = Neg(u) o = Add(p, q) y = If(c) <"
        "then_branch = t () => (int64[1] t) { a = Neg(p) t = Abs(a) },"
        "else_branch = e () => (int64[1] e) { b = Neg(p) e = Sign(b) }> }",
        "g (float[N,4] x, bool c) => (int64[1] o, int64[1] y) {"
        "p = Shape<start=0, end=1>(x) o = Add(p, p) y = If(c) <"
        "then_branch = t () => (int64[1] t) { a = Neg(p) t = Abs(a) },"
        "else_branch = e () => (int64[1] e) { b = Neg(p) e = Sign(b) }> }",
    ),
}


@pytest.mark.parametrize(("before", "after"), MERGED.values(), ids=MERGED.keys())
def test_merges(before: str, after: str) -> None:
    check_rewrite(remove_redundant_ops, before, after)


DEFAULTS = {
    "Softmax": ("Softmax<axis=-1>(x)", "Softmax(x)", 13),
    "LeakyRelu": ("LeakyRelu<alpha=0.01>(x)", "LeakyRelu(x)", 16),
    "a list": ('Pad<mode="constant">(x, k)', "Pad(x, k)", 23),
    "two of them": ("ArgMax<axis=0, keepdims=1>(x)", "ArgMax<select_last_index=0>(x)", 13),
}


@pytest.mark.parametrize(("a", "b", "opset"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_an_absent_attribute_has_its_default(a: str, b: str, opset: int) -> None:
    result = "int64[1,4]" if "Arg" in a else "float[A,B]"
    head = f"g (float[4,4] x) => ({result} y) <int64[4] k = {{1,1,0,0}}>"
    check_rewrite(
        remove_redundant_ops,
        f"{head} {{ a = {a} b = {b} y = Add(a, b) }}",
        f"{head} {{ a = {a} y = Add(a, a) }}",
        opset=opset,
    )


KEPT = {
    "another than the default": "g (float[4,4] x) => (float[4,4] y) "
    "{ a = Softmax<axis=0>(x) b = Softmax(x) y = Add(a, b) }",
    "a zero of the other sign": "g (float[4] x) => (float[4] y) "
    "{ a = Celu<alpha=1.0>(x) b = Celu<alpha=-1.0>(x) y = Add(a, b) }",
    "other attributes": "g (float[4] x) => (float[4] y) { a = LeakyRelu<alpha=0.1>(x) b = LeakyRelu<alpha=0.2>(x) y = Add(a, b) }",
    "an attribute that is not there": "g (float[4] x) => (float[4] y) { a = LeakyRelu<alpha=0.1>(x) b = LeakyRelu(x) y = Add(a, b) }",
    "zeros of other signs": "g (float[4] x) => (float[4] y) <float[1] k = {0}, float[1] l = {-0.0}> { a = Div(x, k) b = Div(x, l) y = Add(a, b) }",
    "constants of other shapes": "g (float[4] x) => (float[1,4] y) <float[1] k = {2}, float[1,1] l = {2}> { a = Mul(x, k) b = Mul(x, l) y = Add(a, b) }",
    "operands of Sub": "g (float[4] x, float[4] z) => (float[4] y) { a = Sub(x, z) b = Sub(z, x) y = Mul(a, b) }",
    "random numbers": "g (float[4] x) => (float[4] y) { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b) }",
    "operators nobody knows": "g (float[4] x) => (float[4] y) { a = mine.F(x) b = mine.F(x) y = Sub(a, b) }",
    "a branch that dequantizes for a product of its own": (
        "g (uint8[4,4] x, uint8[4,4] w, bool c) => (float[4,4] y) <float s = {0.5}>"
        "{ a = DequantizeLinear(x, s) z = Neg(a) n = If(c) <"
        "then_branch = t () => (float[4,4] t) { b = DequantizeLinear(x, s)"
        " d = DequantizeLinear(w, s) t = MatMul(b, d) },"
        "else_branch = e () => (float[4,4] e) { e = Abs(z) }> y = Add(z, n) }"
    ),
    "sizes of another type": "g (float[B,4] x) => (float[2] y, double[2] z) "
    "{ s = Shape(x) y = Cast<to=1>(s) z = Cast<to=11>(s) }",
    "the first of two results": "g (float[B,C] x) => (int64[1] y, int64[1] z) { s = Shape(x) "
    "a, b = Split<num_outputs=2>(s) c = Shape<start=0,end=1>(x) y = Add(a, b) z = Mul(c, b) }",
    "in two branches": (
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <"
        "then_branch = t () => (float[4] t) { a = Relu(x) t = Neg(a) },"
        "else_branch = e () => (float[4] e) { b = Relu(x) e = Abs(b) }> }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(remove_redundant_ops, graph)
