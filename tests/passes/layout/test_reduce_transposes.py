"""Transposes cancel across operators where fewer elements move then, and stay elsewhere."""

from __future__ import annotations

import time

import onnx_ir as ir
import pytest
from rewrites import MODES, check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.layout.reduce_transposes import reduce_transposes
from smelt.runtime.inputs import Mode

G = "g (float[B,4,5,3] x, float[B,4,5,3] z) => (float[B,a,b,c] y)"
TO, BACK = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
REDUCED = {
    "one unary operator": (f"t = {TO}(x) r = Relu(t) y = {BACK}(r)", "y = Relu(x)"),
    "a chain": (
        f"t = {TO}(x) a = Relu(t) b = Exp(a) c = Clip(b) y = {BACK}(c)",
        "a = Relu(x) b = Exp(a) y = Clip(b)",
    ),
    "two operands": (
        f"s = {TO}(x) t = {TO}(z) a = Add(s, t) y = {BACK}(a)",
        "y = Add(x, z)",
    ),
    "a diamond": (
        f"t = {TO}(x) s = Sigmoid(t) m = Mul(t, s) y = {BACK}(m)",
        "s = Sigmoid(x) y = Mul(x, s)",
    ),
    "a constant for each channel": (
        f"c = Constant<value = float[3,1,1] {{1,2,3}}>() t = {TO}(x) a = Add(t, c) y = {BACK}(a)",
        "c = Constant<value = float[3] {1,2,3}>() y = Add(x, c)",
    ),
    "a product with a matrix, of rows that stay rows": (
        "w = Constant<value = float[3,2] {1,2,3,4,5,6}>() "
        "t = Transpose<perm=[0,2,1,3]>(x) a = MatMul(t, w) y = Transpose<perm=[0,2,1,3]>(a)",
        "w = Constant<value = float[3,2] {1,2,3,4,5,6}>() y = MatMul(x, w)",
    ),
    "a scalar": (
        f"c = Constant<value = float[1] {{2}}>() t = {TO}(x) a = Mul(c, t) y = {BACK}(a)",
        "c = Constant<value = float {2}>() y = Mul(c, x)",
    ),
    "a reduction that keeps dims": (
        f"i = Constant<value_ints=[2,3]>() t = {TO}(x) a = ReduceMean(t, i) y = {BACK}(a)",
        "i = Constant<value_ints=[1,2]>() y = ReduceMean(x, i)",
    ),
    "Softmax over channels": (
        f"t = {TO}(x) a = Softmax<axis=1>(t) y = {BACK}(a)",
        "y = Softmax<axis=3>(x)",
    ),
    "Concat of channels": (
        f"s = {TO}(x) t = {TO}(z) a = Concat<axis=1>(s, t) y = {BACK}(a)",
        "y = Concat<axis=3>(x, z)",
    ),
}


@pytest.mark.parametrize(("before", "after"), REDUCED.values(), ids=REDUCED.keys())
def test_reduces(before: str, after: str) -> None:
    # A sum of the largest floats overflows or not, as its order falls.
    modes: tuple[Mode, ...] = ("normal",) if "ReduceMean" in before else MODES
    check_rewrite(reduce_transposes, f"{G} {{ {before} }}", f"{G} {{ {after} }}", modes=modes)


def test_a_reduction_that_drops_dims_renumbers_the_rest() -> None:
    model = text.parse(
        "g (float[B,4,5,3] x) => (float[B,4,5] y) { i = Constant<value_ints=[1]>() "
        "t = Transpose<perm=[0,3,2,1]>(x) a = ReduceSum<keepdims=0>(t, i) y = Transpose<perm=[0,2,1]>(a) }"
    )
    run_pass(reduce_transposes, model)
    assert [n.op_type for n in model.graph if n.op_type != "Constant"] == ["ReduceSum"]


def test_groups_that_border_on_each_other() -> None:
    graph = (
        f"{G} {{ t = {TO}(x) a = Relu(t) u = Transpose<perm=[0,1,3,2]>(a) w = {BACK}(a) "
        "q = Softmax(w) e = ReduceMax(u) y = Add(q, e) }"
    )
    source, model = text.parse(graph), text.parse(graph)
    run_pass(reduce_transposes, model)
    assert [n.op_type for n in model.graph].count("Transpose") <= 1
    check_same_numbers(source, model, reduce_transposes.exactness)


READ_BETWEEN = {
    "an output": (
        "g (float[2,3] x) => (float[2,3] y, float[3,2] r) { t = Transpose(x) r = Relu(t) y = Transpose(r) }",
        "g (float[2,3] x) => (float[2,3] y, float[3,2] r) { y = Relu(x) r = Transpose<perm=[1,0]>(y) }",
    ),
    "a branch": (
        "g (float[2,3] x, bool c) => (float[2,3] y, float[3,2] o) { t = Transpose(x) r = Relu(t) y = Transpose(r) "
        "o = If(c) <then_branch = b () => (float[3,2] b) { b = Neg(r) }, else_branch = e () => (float[3,2] e) { e = Abs(r) }> }",
        "g (float[2,3] x, bool c) => (float[2,3] y, float[3,2] o) { y = Relu(x) r = Transpose<perm=[1,0]>(y) "
        "o = If(c) <then_branch = b () => (float[3,2] b) { b = Neg(r) }, else_branch = e () => (float[3,2] e) { e = Abs(r) }> }",
    ),
}


@pytest.mark.parametrize(("before", "after"), READ_BETWEEN.values(), ids=READ_BETWEEN.keys())
def test_other_readers_get_the_layout_that_they_had(before: str, after: str) -> None:
    check_rewrite(reduce_transposes, before, after)


KEPT = {
    "nothing to cancel": f"{G} {{ t = {TO}(x) y = Relu(t) }}",
    "an operand in another layout": (
        "g (float[4,4] x, float[4,4] z) => (float[4,4] y) { t = Transpose(x) a = Add(t, z) y = Transpose(a) }"
    ),
    "an operator that mixes elements": (
        "g (float[4,4] x, float[4,4] z) => (float[4,4] y) { t = Transpose(x) a = MatMul(t, z) y = Transpose(a) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(reduce_transposes, graph)


def test_a_vector_between_transposes_of_a_square_is_permuted() -> None:
    check_rewrite(
        reduce_transposes,
        "g (float[3,3] x) => (float[3,3] y) <float[3] c = {1,2,3}> { t = Transpose(x) m = Max(t, c) y = Transpose(m) }",
        "g (float[3,3] x) => (float[3,3] y) <float[3,1] c = {1,2,3}> { y = Max(x, c) }",
    )


def test_eight_hundred_residual_steps_are_linear() -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(["B", 8, 16]))
    nodes: list[ir.Node] = []

    def op(op_type: str, *inputs: ir.Value, **attributes: list[int]) -> ir.Value:
        nodes.append(ir.node(op_type, inputs, attributes))
        return nodes[-1].outputs[0]

    y = x
    for _ in range(800):
        t = op("Transpose", y, perm=[0, 2, 1])
        y = op("Add", y, op("Transpose", op("Tanh", t), perm=[0, 2, 1]))
    y.name, y.type, y.shape = "y", x.type, x.shape
    model = ir.Model(ir.Graph([x], [y], nodes=nodes, opset_imports={"": 20}), ir_version=10)
    started = time.process_time()
    run_pass(reduce_transposes, model)
    assert [n.op_type for n in model.graph] == ["Tanh", "Add"] * 800
    assert time.process_time() - started < 10
