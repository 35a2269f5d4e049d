"""Reshapes there and back cancel across elementwise operators."""

from __future__ import annotations

import time

import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.fold_reshape_pairs import fold_reshape_pairs

G = "g (float[B,2,3] x, float[B,2,3] z) => (float[B,2,3] y)"
C = "<int64[2] flat = {-1,3}, int64[3] back = {-1,2,3}, int64[2] two = {0,6}, int64[1] last = {3}>"
FOLDED = {
    "one operator": ("r = Reshape(x, two) a = Relu(r) y = Reshape(a, back)", "y = Relu(x)"),
    "a chain": (
        "r = Reshape(x, two) a = Gelu(r) b = Cast<to=11>(a) c = Cast<to=1>(b) y = Reshape(c, back)",
        "a = Gelu(x) b = Cast<to=11>(a) y = Cast<to=1>(b)",
    ),
    "a scalar of rank 2": (
        "c = Constant<value = float[1,1] {2}>() r = Reshape(x, two) a = Div(c, r) y = Reshape(a, back)",
        "c = Constant<value = float {2}>() y = Div(c, x)",
    ),
    "a pair of quantizations": (
        "k = Constant<value_float=0.5>() r = Reshape(x, two) q = QuantizeLinear(r, k)"
        " d = DequantizeLinear(q, k) y = Reshape(d, back)",
        "k = Constant<value_float=0.5>() q = QuantizeLinear(x, k) y = DequantizeLinear(q, k)",
    ),
    "a vector of one scale": (
        "k = Constant<value_floats=[0.5]>() r = Reshape(x, two) q = QuantizeLinear(r, k)"
        " a = Cast<to=1>(q) y = Reshape(a, back)",
        "k = Constant<value_floats=[0.5]>() q = QuantizeLinear(x, k) y = Cast<to=1>(q)",
    ),
    "an operand of one element": (
        "o = Constant<value_ints=[0,1]>() h = ReduceMax<keepdims=0>(z, o) f = ReduceMin(h)"
        " r = Reshape(x, two) a = Mul(r, f) y = Reshape(a, back)",
        "o = Constant<value_ints=[0,1]>() h = ReduceMax<keepdims=0>(z, o) f = ReduceMin(h)"
        " y = Mul(x, f)",
    ),
    "two operands": (
        "r = Reshape(x, two) s = Reshape(z, two) a = Sub(r, s) y = Reshape(a, back)",
        "y = Sub(x, z)",
    ),
    "a diamond": (
        "r = Reshape(x, two) s = Sigmoid(r) a = Mul(r, s) y = Reshape(a, back)",
        "s = Sigmoid(x) y = Mul(x, s)",
    ),
    "Unsqueeze and Squeeze": (
        "r = Unsqueeze(x, last) a = Neg(r) y = Squeeze(a, last)",
        "y = Neg(x)",
    ),
    "a start that is read elsewhere": (
        "r = Reshape(x, two) a = Neg(r) b = Reshape(a, back) i = Constant<value_ints=[1]>() "
        "s = ReduceSum<keepdims=0>(r, i) t = ReduceMax(s) y = Add(b, t)",
        "r = Reshape(x, two) b = Neg(x) i = Constant<value_ints=[1]>() "
        "s = ReduceSum<keepdims=0>(r, i) t = ReduceMax(s) y = Add(b, t)",
    ),
    "two ends": (
        "r = Reshape(x, two) a = Neg(r) b = Reshape(a, back) c = Exp(a) d = Reshape(c, back) y = Add(b, d)",
        "a = Neg(x) c = Exp(a) y = Add(a, c)",
    ),
}


@pytest.mark.parametrize(("before", "after"), FOLDED.values(), ids=FOLDED.keys())
def test_folds(before: str, after: str) -> None:
    check_rewrite(fold_reshape_pairs, f"{G} {C} {{ {before} }}", f"{G} {C} {{ {after} }}")


def test_an_empty_tensor_and_rank_0() -> None:
    check_rewrite(
        fold_reshape_pairs,
        "g (float[0,3] x, float z) => (float[0,3] y, float w) <int64[2] s = {3,0}, int64[2] t = {0,3}, "
        "int64[1] one = {1}, int64[0] none = {}> { a = Reshape<allowzero=1>(x, s) b = Neg(a) "
        "y = Reshape<allowzero=1>(b, t) c = Reshape(z, one) d = Exp(c) w = Reshape(d, none) }",
        "g (float[0,3] x, float z) => (float[0,3] y, float w) { y = Neg(x) w = Exp(z) }",
    )


KEPT = {
    "another shape at the end": "r = Reshape(x, two) a = Relu(r) b = Reshape(a, flat) y = Reshape(b, back)",
    "scales of an axis": (
        "k = Constant<value_floats=[0.5,1.0,1.5,2.0,2.5,3.0]>() r = Reshape(x, two)"
        " q = QuantizeLinear(r, k) d = DequantizeLinear(q, k) y = Reshape(d, back)"
    ),
    "an axis that the first shape has not": (
        "k = Constant<value_floats=[0.5]>() h = Unsqueeze(x, last)"
        " q = QuantizeLinear<axis=3>(h, k) a = Cast<to=1>(q) y = Squeeze(a, last)"
    ),
    "an operator along an axis": "r = Reshape(x, two) a = Softmax(r) y = Reshape(a, back)",
    "a row": (
        "c = Constant<value = float[6] {1,2,3,4,5,6}>() r = Reshape(x, two) a = Mul(r, c) y = Reshape(a, back)"
    ),
    "an operand of another size": (
        "i = Constant<value_ints=[0]>() r = Reshape(x, two) m = ReduceMax(r, i) a = Sub(r, m) y = Reshape(a, back)"
    ),
    "read between": (
        "r = Reshape(x, two) a = Relu(r) b = Reshape(a, back) m = Softmax(a) c = Reshape(m, back) y = Add(b, c)"
    ),
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_keeps(body: str) -> None:
    check_unchanged(fold_reshape_pairs, f"{G} {C} {{ {body} }}")


KEPT_GRAPHS = {
    "a second quantization to int8 that is read twice": (
        "g (float[2,3] x) => (float[2,3] y)"
        " <float k = {0.5}, int8 z = {0}, int64[1] one = {6}, int64[2] back = {2,3}>"
        " { p = QuantizeLinear(x, k, z) e = DequantizeLinear(p, k, z) r = Reshape(e, one)"
        " q = QuantizeLinear(r, k, z) d = DequantizeLinear(q, k, z) s = Relu(d) t = Neg(d)"
        " a = Mul(s, t) y = Reshape(a, back) }"
    ),
    "an output between": (
        "g (float[2,3] x) => (float[2,3] y, float[6] a) <int64[1] s = {6}, int64[2] t = {2,3}> "
        "{ r = Reshape(x, s) a = Relu(r) y = Reshape(a, t) }"
    ),
    "a branch that reads between": (
        "g (float[2,3] x, bool c) => (float[2,3] y, float[6] o) <int64[1] s = {6}, int64[2] t = {2,3}> "
        "{ r = Reshape(x, s) a = Relu(r) y = Reshape(a, t) o = If(c) <"
        "then_branch = b () => (float[6] b) { b = Neg(a) }, else_branch = e () => (float[6] e) { e = Abs(a) }> }"
    ),
    "sizes that nothing proves": (
        "g (float[N,M] x, int64[2] s, int64[2] t) => (float[P,Q] y) "
        "{ r = Reshape(x, s) a = Relu(r) y = Reshape(a, t) }"
    ),
    "a transposed shape of as many elements": (
        "g (float[2,3] x) => (float[3,2] y) <int64[1] s = {6}, int64[2] t = {3,2}> "
        "{ r = Reshape(x, s) a = Relu(r) y = Reshape(a, t) }"
    ),
    "operands of two shapes": (
        "g (float[2,3] x, float[3,2] w) => (float[2,3] y) <int64[1] s = {6}, int64[2] t = {2,3}> "
        "{ r = Reshape(x, s) v = Reshape(w, s) a = Sub(r, v) y = Reshape(a, t) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT_GRAPHS.values(), ids=KEPT_GRAPHS.keys())
def test_keeps_the_graph(graph: str) -> None:
    check_unchanged(fold_reshape_pairs, graph)


def test_inside_a_branch() -> None:
    graph = (
        "g (float[2,3] x, bool c) => (float[2,3] y) <int64[1] s = {6}, int64[2] t = {2,3}> { y = If(c) <"
        "then_branch = b () => (float[2,3] b) { r = Reshape(x, s) n = Neg(r) b = Reshape(n, t) }, "
        "else_branch = e () => (float[2,3] e) { e = Abs(x) }> }"
    )
    source, model = text.parse(graph), text.parse(graph)
    assert run_pass(fold_reshape_pairs, model).fired == {"reshape back": 1}
    check_same_numbers(source, model, fold_reshape_pairs.exactness)


def test_two_thousand_pairs_are_linear() -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2, 3]))
    back = ir.Value(name="back", const_value=ir.tensor([2, 3]))
    nodes: list[ir.Node] = []

    def op(op_type: str, *inputs: ir.Value, **attributes: int) -> ir.Value:
        nodes.append(ir.node(op_type, inputs, attributes))
        return nodes[-1].outputs[0]

    y = x
    for _ in range(2000):
        y = op("Reshape", op("Tanh", op("Flatten", y, axis=0)), back)
    y.name, y.type, y.shape = "y", x.type, x.shape
    graph = ir.Graph([x], [y], nodes=nodes, initializers=[back], opset_imports={"": 20})
    model = ir.Model(graph, ir_version=10)
    started = time.process_time()
    run_pass(fold_reshape_pairs, model)
    assert [node.op_type for node in model.graph] == ["Tanh"] * 2000
    assert time.process_time() - started < 10
