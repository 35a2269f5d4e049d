"""Dims of size 1 that one Reshape inserts and another removes."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.simplify.merge_consecutive_reshapes import inserted
from smelt.passes.simplify.sink_unit_dims import sink_unit_dims

PUT = "i = Constant<value_ints=[2]>() u = Unsqueeze(x, i)"
TAKE = "s = Constant<value_ints=[-1,4]>() y = Reshape(t, s)"
G = "g (float[B,3,4] x, float[3,1,4] z, bool[1,4] c, float[3,5,4] w) => (float[N,4] y)"

MOVED = {
    "element by element": (
        "t = Relu(u)",
        "v = Relu(x) i = Constant<value_ints=[2]>() t = Unsqueeze(v, i)",
    ),
    "Transpose": (
        "t = Transpose<perm=[2,0,1,3]>(u)",
        "v = Transpose<perm=[0,1,2]>(x) i = Constant<value_ints=[0]>() t = Unsqueeze(v, i)",
    ),
    "Softmax over the last dim": (
        "t = Softmax(u)",
        "v = Softmax<axis=2>(x) i = Constant<value_ints=[2]>() t = Unsqueeze(v, i)",
    ),
    "Softmax over one before": (
        "t = Softmax<axis=1>(u)",
        "v = Softmax<axis=1>(x) i = Constant<value_ints=[2]>() t = Unsqueeze(v, i)",
    ),
    "an operand with size 1 there": (
        "t = Add(u, z)",
        "j = Constant<value_ints=[1]>() q = Squeeze(z, j) v = Add(x, q) i = Constant<value_ints=[2]>() t = Unsqueeze(v, i)",
    ),
    "a condition, and one that lacks dims": (
        "n = Constant<value_float=-9.0>() t = Where(c, u, n)",
        "n = Constant<value_float=-9.0>() j = Constant<value_ints=[0]>() q = Squeeze(c, j) v = Where(q, x, n) i = Constant<value_ints=[2]>() t = Unsqueeze(v, i)",
    ),
}


@pytest.mark.parametrize(("before", "after"), MOVED.values(), ids=MOVED.keys())
def test_operators_move_in_front_of_the_inserted_dims(before: str, after: str) -> None:
    check_rewrite(sink_unit_dims, f"{G} {{ {PUT} {before} {TAKE} }}", f"{G} {{ {after} {TAKE} }}")


SPLITS = {
    "it splits a dim, too": ("float[N,6] x", "0,3,1,2", "v = Transpose<perm=[0,2,1]>(k)", "0,3,2"),
    "a first dim of 1 stays": (
        "float[1,6] x", "1,3,1,2", "v = Transpose<perm=[0,2,1]>(k)", "1,3,2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SPLITS)
def test_a_reshape_that_puts_a_dim_in(case: str) -> None:
    x, put, transpose, split = SPLITS[case]
    rows = x.split("[")[1].split(",")[0]
    head, take = f"g ({x}) => (float[{rows},6] y)", "int64[2] s = {0,6}"
    check_rewrite(
        sink_unit_dims,
        f"{head} <int64[4] p = {{{put}}}, {take}> "
        "{ u = Reshape(x, p) t = Transpose<perm=[0,3,2,1]>(u) y = Reshape(t, s) }",
        f"{head} <int64[3] p = {{{split}}}, {take}, int64[1] i = {{2}}> "
        f"{{ k = Reshape(x, p) {transpose} t = Unsqueeze(v, i) y = Reshape(t, s) }}",
    )


def test_a_chain_is_walked_to_its_end() -> None:
    chain = "a = Mul(u, z) b = Softmax(a) t = Transpose<perm=[1,2,0,3]>(b)"
    source = f"{G} {{ {PUT} {chain} {TAKE} }}"
    model = text.parse(source)
    run_pass(sink_unit_dims, model)
    assert [n.op_type for n in model.graph if n.op_type != "Constant"] == [
        *("Squeeze", "Mul", "Softmax", "Transpose", "Unsqueeze", "Reshape")
    ]
    check_same_numbers(
        text.parse(source), model, sink_unit_dims.exactness, None, ("normal", "edges")
    )


KEPT = {
    "an operand repeats the dim": f"{PUT} t = Add(u, w) {TAKE}",
    "the sum of a Softmax is over it": f"{PUT} t = Softmax<axis=2>(u) {TAKE}",
    "no Reshape at the end": f"{PUT} t = Relu(u) y = ReduceSum(t)",
    "another reader": f"{PUT} t = Relu(u) v = ReduceMax(t) {TAKE.replace('y =', 'r =')} y = Add(r, v)",
    "a reader of what is put in": f"{PUT} t = Relu(u) v = ReduceMax(u) {TAKE.replace('y =', 'r =')} y = Add(r, v)",
    "a Reshape that splits": f"i = Constant<value_ints=[0,3,2,2]>() u = Reshape(x, i) t = Relu(u) {TAKE}",
}


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_other_inserted_dims_stay(body: str) -> None:
    check_unchanged(sink_unit_dims, f"{G.replace('[N,4] y', ' y')} {{ {body} }}")


def test_inserted_dims_of_graph_outputs_stay() -> None:
    outputs = "(float[N,4] y, float[B,3,1,4] t)"
    g = f"g (float[B,3,4] x) => {outputs}"
    check_unchanged(sink_unit_dims, f"{g} {{ {PUT} t = Relu(u) {TAKE} }}")


def test_the_dims_that_are_put_in() -> None:
    shape = ir.Shape
    assert inserted(shape(["B", 4]), shape(["B", 1, 4])) == (1,)
    assert inserted(shape(["B", 1, 4]), shape(["B", 1, 1, 4])) == (2,)
    assert inserted(shape([4]), shape([1, 4, 1])) == (0, 2)
    assert inserted(shape([]), shape([1, 1])) == (0, 1)
    assert inserted(shape(["B", 4]), shape([4, "B", 1])) is None
    assert inserted(shape([None, 4]), shape([None, 1, 4])) is None
    assert inserted(shape(["B"]), shape(["B"])) is None
    assert inserted(None, shape([1])) is None
