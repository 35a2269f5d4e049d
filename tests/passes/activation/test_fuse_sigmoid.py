"""1 / (1 + exp(-x)) becomes Sigmoid, unless a reader depends on the relative error of small
results."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from literals import literal
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.activation.fuse_sigmoid import fuse_sigmoid

G = "g (float[N,3] x) => (float[N,3] y)"
PLAIN = "n = Neg(x) e = Exp(n) s = Add(e, one) r = Div(one, s) y = Tanh(r)"
SPELLINGS = {
    "plain": PLAIN,
    "swapped": PLAIN.replace("Add(e, one)", "Add(one, e)"),
    "Reciprocal": PLAIN.replace("Div(one, s)", "Reciprocal(s)"),
    "times minus one": PLAIN.replace("Neg(x)", "Mul(minus, x)"),
}
FUSED = "r = Sigmoid(x) y = Tanh(r)"
ONE = "<float one = {1}, float minus = {-1}>"


@pytest.mark.parametrize("body", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_fuses(body: str, opset: int) -> None:
    check_rewrite(fuse_sigmoid, f"{G} {ONE} {{ {body} }}", f"{G} {{ {FUSED} }}", opset=opset)


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_floats(dtype: str) -> None:
    g = f"g ({dtype}[N] x) => ({dtype}[N] y)"
    check_rewrite(
        fuse_sigmoid,
        f"{g} <{dtype} one = {literal(dtype, 1)}> {{ {PLAIN} }}",
        f"{g} {{ {FUSED} }}",
        modes=("normal",),
    )


NEXT = "<float one = {1}, float next = {1.0000001}, float below = {-1.0000001}>"
KEPT = {
    "not negated": f"{G} {ONE} {{ {PLAIN.replace('Neg(x)', 'Abs(x)')} }}",
    "another number": f"{G} <float one = {{1.0001}}> {{ {PLAIN} }}",
    "a sum with the next number": f"{G} {NEXT} {{ {PLAIN.replace('Add(e, one)', 'Add(e, next)')} }}",
    "a quotient of the next number": f"{G} {NEXT} {{ {PLAIN.replace('Div(one', 'Div(next')} }}",
    "times the next number": f"{G} {NEXT} {{ {PLAIN.replace('Neg(x)', 'Mul(x, below)')} }}",
    "over one": f"{G} {ONE} {{ {PLAIN.replace('Div(one, s)', 'Div(s, one)')} }}",
    "read elsewhere": f"{G[:-1]}, float[N,3] z) {ONE} {{ {PLAIN} z = Neg(s) }}",
    "the inner result is an output": f"{G[:-1]}, float[N,3] e) {ONE} {{ {PLAIN} }}",
    "a constant of higher rank": "g (float[3] x) => (float[1,3] y) <float[1,1] one = {1}> "
    f"{{ {PLAIN} }}",
    "bfloat16": "g (bfloat16[N] x) => (bfloat16[N] y) <bfloat16 one = {16256}> { " + PLAIN + " }",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_sigmoid, source)


READ = {
    "a logarithm": "y = Log(r)",
    "a divisor": "y = Div(x, r)",
    "an output of the model": "y = Identity(r)",
    "a logarithm of the difference to one": "d = Sub(one, r) y = Log(d)",
}


@pytest.mark.parametrize("reader", READ.values(), ids=READ)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_keeps_what_is_read_where_it_is_small(reader: str, dtype: str) -> None:
    """``tests/ir/value_facts/test_relative_readers.py`` tests all readers."""
    body = PLAIN.replace("y = Tanh(r)", reader)
    graph = f"g ({dtype}[N] x) => ({dtype}[N] y) <{dtype} one = {literal(dtype, 1)}> {{ {body} }}"
    check_unchanged(fuse_sigmoid, graph)


def test_half_floats_have_no_such_tail() -> None:
    """ONNX Runtime computes float16 in float32: the lost results are below float16's normal
    numbers."""
    g = "g (float16[N] x) => (float16[N] y)"
    body = PLAIN.replace("y = Tanh(r)", "y = Log(r)")
    before = f"{g} <float16 one = {literal('float16', 1)}> {{ {body} }}"
    after = f"{g} {{ r = Sigmoid(x) y = Log(r) }}"
    check_rewrite(fuse_sigmoid, before, after, modes=("normal",))


@pytest.mark.parametrize("target", ["onnx", "ort", "host", "c"])
def test_no_target_makes_an_infinity_of_a_logarithm(target: str) -> None:
    """c and host have an accurate Sigmoid, so they fuse."""
    body = PLAIN.replace("y = Tanh(r)", "y = Log(r)")
    model = text.parse(f"g (float[4] x) => (float[4] y) <float one = {{1}}> {{ {body} }}")
    artifact = smelt.compile(model, target=target)
    fused = "Sigmoid" in [node.op_type for node in artifact.model.graph]
    assert fused == (target in ("host", "c"))
    x = np.array([-80, -30, -20, -16], np.float32)
    np.testing.assert_allclose(artifact(x)[0], x, rtol=1e-6)


def test_a_sigmoid_of_the_source_stays() -> None:
    """A Sigmoid of the source is the author's choice."""
    model = text.parse("g (float[4] x) => (float[4] y) { s = Sigmoid(x) y = Log(s) }")
    smelt.optimize(model)
    assert isinstance(model, ir.Model)
    assert [node.op_type for node in model.graph] == ["Sigmoid", "Log"]
