"""Constant folding: nodes that fold, and nodes that never do."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.const_elimination import const_elimination
from smelt.runtime.onnxruntime import OnnxRuntime

X = "g (float[N,8,4] x) => (float[N,8,4] y)"
FOLDED = {
    "arithmetic": (
        f"{X} {{ a = Constant<value_float=2.0>() b = Constant<value_float=3.0>() c = Mul(a, b) y = Mul(x, c) }}",
        f"{X} {{ c = Constant<value_float=6.0>() y = Mul(x, c) }}",
    ),
    "a chain": (
        f"{X} {{ a = Constant<value_float=4.0>() b = Sqrt(a) c = Neg(b) d = Exp(c) e = Log(d) y = Mul(x, e) }}",
        f"{X} {{ c = Constant<value_float=-2.0>() y = Mul(x, c) }}",
    ),
    "a known dim of a symbolic shape": (
        "g (float[N,8,4] x) => (int64 y) { s = Shape(x) i = Constant<value_int=1>() d = Gather(s, i) y = Neg(d) }",
        "g (float[N,8,4] x) => (int64 y) { c = Constant<value_int=-8>() y = Identity(c) }",
    ),
    "the static end of a shape": (
        "g (float[N,8,4] x) => (int64[2] y) { s = Shape<start=1>(x) y = Neg(s) }",
        "g (float[N,8,4] x) => (int64[2] y) { c = Constant<value_ints=[-8,-4]>() y = Identity(c) }",
    ),
    "inside a branch": (
        "g (float[4] x, bool b) => (float[4] y) { y = If(b) <then_branch = t () => (float[4] t) "
        "{ c = Constant<value_float=4.0>() d = Sqrt(c) t = Mul(x, d) }, "
        "else_branch = e () => (float[4] e) { e = Neg(x) }> }",
        "g (float[4] x, bool b) => (float[4] y) { y = If(b) <then_branch = t () => (float[4] t) "
        "{ d = Constant<value_float=2.0>() t = Mul(x, d) }, "
        "else_branch = e () => (float[4] e) { e = Neg(x) }> }",
    ),
}


@pytest.mark.parametrize(("before", "after"), FOLDED.values(), ids=FOLDED.keys())
def test_folds(before: str, after: str) -> None:
    check_rewrite(const_elimination, before, after)


KEPT = {
    "a symbolic dim": "g (float[N,4] x) => (int64[2] y) { y = Shape(x) }",
    "a random operator": "g () => (float[2] y) { y = RandomNormal<shape=[2]>() }",
    "an input that may be overridden": "g (float[4] x, float c = {1.0}) => (float y) { y = Neg(c) }",
    "a compressed weight": (
        "g (float[2] x) => (float[2] y) <int8[2] q = {1, 2}, float s = {0.5}> "
        "{ w = DequantizeLinear(q, s) y = Mul(x, w) }"
    ),
    "codes of 4 bits": (
        "g (float[3] x) => (float[3] y) <uint4[3] q = {16, 1}, float[2] t = {0.5, 1}> "
        "{ c = Cast<to=6>(q) w = Gather(t, c) y = Mul(x, w) }"
    ),
    "a compressed weight of channels, moved": (
        "g (float[2] x) => (float[2,2] y) <int8[2,2] q = {1, 2, 3, 4}, float[2] s = {0.5, 1},"
        "int8[2] z = {0, 1}> { w = DequantizeLinear<axis=0>(q, s, z) t = Transpose(w)"
        " y = Mul(x, t) }"
    ),
    "a compressed bias": (
        "g (float[1] x) => (float[1] y) <int32[1] q = {7}, float s = {0.5}> "
        "{ b = DequantizeLinear(q, s) n = Neg(b) y = Add(x, n) }"
    ),
    "a division by zero": (
        "g (int64[2] x) => (int64[2] y) <int64 a = {1}, int64 b = {0}> { c = Div(a, b) y = Add(x, c) }"
    ),
    "INT_MIN / -1": (
        "g (int64[2] x) => (int64[2] y) <int64 a = {-9223372036854775808}, int64 b = {-1}> "
        "{ c = Div(a, b) y = Add(x, c) }"
    ),
    "a cast out of range": (
        "g (int8[2] x) => (int8[2] y) <float a = {1e10}> { c = Cast<to=3>(a) y = Add(x, c) }"
    ),
    "NaN to an integer": (
        "g (int64[2] x) => (int64[2] y) <float a = {nan}> { c = Cast<to=7>(a) y = Add(x, c) }"
    ),
    "a constant of a trillion elements": (
        "g (float x) => (float[a,b] y) <int64[2] s = {1000000, 1000000}> { c = ConstantOfShape(s) y = Add(x, c) }"
    ),
    "a weight that would grow": (
        "g (float x) => (float[300,300] y) <int64[2] s = {300, 300}> { c = ConstantOfShape(s) y = Add(x, c) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(const_elimination, graph)


def test_a_constant_output_keeps_its_name() -> None:
    model = text.parse(
        "g (float[2] x) => (float y) { a = Constant<value_float=4.0>() y = Sqrt(a) }"
    )
    run_pass(const_elimination, model)
    assert [value.name for value in model.graph.outputs] == ["y"]
    assert [node.op_type for node in model.graph] == ["Identity"]


def test_the_size_option() -> None:
    graph = "g (float[8] x) => (float[8] y) <float[8] a = {1,2,3,4,5,6,7,8}> { b = Neg(a) y = Add(x, b) }"
    check_unchanged(const_elimination, graph, skip_const_by_size=7)
    model = text.parse(graph)
    run_pass(const_elimination, model, skip_const_by_size=8)
    assert len(model.graph) == 1


def test_weights_are_folded_where_the_old_ones_die() -> None:
    weight = ir.Value(
        name="w",
        type=ir.TensorType(ir.DataType.FLOAT),
        shape=ir.Shape([200, 300]),
        const_value=ir.Tensor(np.ones((200, 300), np.float32)),
    )
    model = text.parse(
        "g (float[N,300] x, float[200,300] w) => (float[N,200] y) { t = Transpose<perm=[1,0]>(w) y = MatMul(x, t) }"
    )
    old = model.graph.inputs.pop()
    model.graph.register_initializer(weight)
    old.replace_all_uses_with(weight)
    run_pass(const_elimination, model)
    assert [node.op_type for node in model.graph] == ["MatMul"]


def _of_weight(graph: str) -> ir.Model:
    """Return the model of ``graph`` whose input w, 200 x 300 ones, is an initializer."""
    model = text.parse(graph, 18)
    old = next(value for value in model.graph.inputs if value.name == "w")
    model.graph.inputs.remove(old)
    old.const_value = ir.Tensor(np.ones((200, 300), np.float32), name="w")
    model.graph.register_initializer(old)
    return model


CUT = (
    "g (float[200,300] w, float[200,300] x) => (float[200,300] y) "
    "<int64[1] zero = {0}, int64[1] half = {100}, int64[1] end = {200}> "
    "{ a = Slice(w, zero, half, zero) b = Slice(w, half, end, zero) c = Concat<axis=0>(b, a) REST }"
)


def test_a_weight_whose_parts_change_places_is_folded() -> None:
    model = _of_weight(CUT.replace("REST", "y = Add(x, c)"))
    run_pass(const_elimination, model)
    assert [node.op_type for node in model.graph] == ["Add"]


@pytest.mark.parametrize(
    "rest",
    [
        "d = Add(x, w) y = Add(d, c)",
        "e = Slice(w, zero, half, zero) f = Concat<axis=0>(e, e) d = Add(x, f) y = Add(d, c)",
    ],
    ids=["read as a whole, too", "parts that overlap"],
)
def test_parts_stay_where_weights_would_grow(rest: str) -> None:
    model = _of_weight(CUT.replace("REST", rest))
    before = len(model.graph)
    run_pass(const_elimination, model)
    assert len(model.graph) == before


NORMED = (
    "g (float[200,300] w, float[N,200] x) => (OUT) <int64[1] rows = {0}, bool p = {1}> "
    "{ m = ReduceMean(w, rows) d = Sub(w, m) v = Mul(d, d) s = ReduceMean(v, rows) r = Sqrt(s) n = Div(d, r) REST }"
)
Y = "float[N,300] y"


def test_a_weight_that_the_model_normalizes_is_folded() -> None:
    model = _of_weight(NORMED.replace("OUT", Y).replace("REST", "y = MatMul(x, n)"))
    weight = np.random.default_rng(0).normal(size=(200, 300)).astype(np.float32)
    model.graph.initializers["w"].const_value = ir.Tensor(weight, name="w")
    x = np.ones((2, 200), np.float32)
    (expected,) = OnnxRuntime(model.clone())(x)
    run_pass(const_elimination, model)
    assert [node.op_type for node in model.graph] == ["MatMul"]
    np.testing.assert_allclose(OnnxRuntime(model)(x)[0], expected, rtol=1e-4, atol=1e-4)


GROWS = {
    "the weight is read, too": (Y, "z = Add(n, w) y = MatMul(x, z) u = MatMul(x, w)", "Add"),
    "the weight is an output": (
        f"{Y}, float[200,300] k",
        "k = Identity(w) y = MatMul(x, n)",
        "Sub",
    ),
    "two of its size are left": (Y, "a = MatMul(x, n) b = MatMul(x, d) y = Add(a, b)", "Div"),
    "one inside is an output": (f"{Y}, float[200,300] d", "y = MatMul(x, n)", "Div"),
    "a branch reads one inside": (
        Y,
        "a = MatMul(x, n) b = If(p) <then_branch = t () => (float[N,300] e) { e = MatMul(x, d) }, "
        "else_branch = f () => (float[N,300] h) { h = MatMul(x, n) }> y = Add(a, b)",
        "Div",
    ),
    "one inside has more than 16 MiB": (
        Y,
        "o = Constant<value_ints = [72, 1, 1]>() e = Expand(d, o) c = ReduceMean<keepdims = 0>(e, rows) "
        "a = MatMul(x, c) y = Identity(a)",
        "Expand",
    ),
    "one inside is random": (Y, "b = Bernoulli(n) y = MatMul(x, b) q = MatMul(x, n)", "Bernoulli"),
}


@pytest.mark.parametrize(("out", "rest", "kept"), GROWS.values(), ids=GROWS.keys())
def test_one_stays_where_weights_would_grow(out: str, rest: str, kept: str) -> None:
    model = _of_weight(NORMED.replace("OUT", out).replace("REST", rest))
    run_pass(const_elimination, model)
    assert kept in [node.op_type for node in model.graph]


TABLE = """g (float[2401,2] places, float[96,2] up, float[HEADS,96] down, float[N,HEADS,49,49] x)
    => (float[N,HEADS,49,49] y OUT) <int64[4] to = {1, HEADS, 49, 49}> {
        h = Gemm<transB = 1>(places, up) r = Relu(h) t = Gemm<transB = 1>(r, down)
        c = Transpose<perm = [1, 0]>(t) b = Reshape(c, to) y = Add(x, b) REST }"""


def _table(heads: int, out: str = "", rest: str = "") -> ir.Model:
    """Return the bias table of Swin V2: positions go through two layers to one number for each
    head."""
    graph = TABLE.replace("HEADS", str(heads)).replace("OUT", out).replace("REST", rest)
    model = text.parse(graph, 20)
    rng = np.random.default_rng(0)
    for value in [v for v in model.graph.inputs if v.name != "x"]:
        assert value.shape is not None
        model.graph.inputs.remove(value)
        array = rng.normal(size=value.shape.numpy()).astype(np.float32)
        value.const_value = ir.Tensor(array, name=value.name)
        model.graph.register_initializer(value)
    return model


OTHERS = {
    "alone": ("", ""),
    "a large product of the same constants": (
        ", float[2401,2401] z",
        "q = Transpose<perm = [1, 0]>(places) z = MatMul(places, q)",
    ),
}


@pytest.mark.parametrize(("out", "rest"), OTHERS.values(), ids=OTHERS.keys())
def test_a_table_that_layers_make_is_folded(out: str, rest: str) -> None:
    model = _table(12, out, rest)
    x = np.zeros((1, 12, 49, 49), np.float32)
    expected = OnnxRuntime(model.clone())(x)[0]
    run_pass(const_elimination, model)
    assert [node.op_type for node in model.graph if node.op_type != "MatMul"] == ["Add"]
    np.testing.assert_allclose(OnnxRuntime(model)(x)[0], expected, rtol=1e-4, atol=1e-4)


def test_a_table_beyond_four_times_the_limit_stays() -> None:
    model = _table(32)  # 307 KB
    run_pass(const_elimination, model)
    assert [node.op_type for node in model.graph][:3] == ["Gemm", "Relu", "Gemm"]
