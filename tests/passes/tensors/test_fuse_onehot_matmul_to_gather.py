"""Products of one-hot vectors and a table become Gathers."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.ir.worklist import RuleStats
from smelt.passes.tensors.fuse_onehot_matmul_to_gather import (
    Indices,
    fuse_onehot_matmul_to_gather,
)
from smelt.runtime.runner import open_runner

TABLE = "float[3,2] t = {1,2,3,4,5,-6}"
DEPTH = "int64 three = {3}, float[2] v = {0,1}"


def graph(
    make: str,
    *,
    inputs: str = "int64[N,4] x",
    result: str = "float[N,4,2]",
    axis: int = -1,
    table: str = TABLE,
    values: str = DEPTH,
    more: str = "",
    rest: str = "",
) -> str:
    return (
        f"g ({inputs}) => ({result} y{more}) <{table}, {values}> "
        f"{{ {make} h = OneHot<axis={axis}>(i, three, v) y = MatMul(h, t) {rest} }}"
    )


def gathered(
    make: str, inputs: str = "int64[N,4] x", result: str = "float[N,4,2]", table: str = TABLE
) -> str:
    return f"g ({inputs}) => ({result} y) <{table}, {DEPTH}> {{ {make} y = Gather<axis=0>(t, i) }}"


MODULO = "i = Mod(x, three)"
PROVED = {
    "Mod": (MODULO, "int64[N,4] x", "float[N,4,2]"),
    "ArgMax": ("i = ArgMax<axis=2, keepdims=0>(x)", "float[N,4,3] x", "float[N,4,2]"),
    "Clip": (
        "a = Constant<value_int=-3>() c = Constant<value_int=2>() i = Clip(x, a, c)",
        "int64[N,4] x",
        "float[N,4,2]",
    ),
    "constants, negative ones too": (
        "i = Constant<value_ints=[2,-3,0,-1]>()",
        "float[N] x",
        "float[4,2]",
    ),
    "no numbers": ("i = Mod(x, three)", "int64[0] x", "float[0,2]"),
    "int32": ("c = Cast<to=6>(three) i = Mod(x, c)", "int32[N,4] x", "float[N,4,2]"),
}


@pytest.mark.parametrize(("make", "inputs", "result"), PROVED.values(), ids=PROVED.keys())
def test_becomes_a_gather(make: str, inputs: str, result: str) -> None:
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        graph(make, inputs=inputs, result=result),
        gathered(make, inputs=inputs, result=result),
    )


def test_the_last_axis_by_its_number() -> None:
    check_rewrite(fuse_onehot_matmul_to_gather, graph(MODULO, axis=2), gathered(MODULO))


def test_small_indices_are_widened() -> None:
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        graph("i = Cast<to=2>(x)", inputs="bool[N,4] x"),
        gathered("j = Cast<to=2>(x) i = Cast<to=7>(j)", inputs="bool[N,4] x"),
    )


def test_a_cast_between() -> None:
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        f"g (int64[N,4] x) => (float[N,4,2] y) <{TABLE}, int64 three = {{3}}, int64[2] v = {{0,1}}> "
        f"{{ {MODULO} h = OneHot(i, three, v) c = Cast<to=1>(h) y = MatMul(c, t) }}",
        gathered(MODULO),
    )


@pytest.mark.parametrize("dtype", ["double", "int32", "int64"])
def test_other_tables(dtype: str) -> None:
    table, result = TABLE.replace("float", dtype), f"{dtype}[N,4,2]"
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        graph(MODULO, result=result, table=table, values=DEPTH.replace("float", dtype)),
        gathered(MODULO, result=result, table=table),
    )


def test_halves() -> None:
    one, two = 0x3C00, 0x4000
    table = f"float16[3,2] t = {{{one},{two},0,{one},{two},{two}}}"
    values = f"int64 three = {{3}}, float16[2] v = {{0,{one}}}"
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        graph(MODULO, result="float16[N,4,2]", table=table, values=values),
        gathered(MODULO, result="float16[N,4,2]", table=table),
    )


def test_a_negative_zero_is_what_a_sum_makes_of_it() -> None:
    source = graph(MODULO, table=TABLE.replace("{1,", "{-0.0,"))
    model = text.parse(source)
    indices = np.zeros((1, 4), np.int64)
    (before,) = open_runner(text.parse(source))(indices)
    assert run_pass(fuse_onehot_matmul_to_gather, model).rewrites == 1
    (after,) = open_runner(model)(indices)
    assert before.tobytes() == after.tobytes()
    assert not np.signbit(after[0, 0, 0])


POSITIONS = "int64[3] p = {0,1,2}"
TO_FLOAT = "v = Cast<to=1>(e)"


def compared(
    make: str,
    *,
    then: str = TO_FLOAT,
    positions: str = POSITIONS,
    inputs: str = "int64[N,4] x",
    result: str = "float[N,4,2]",
    last: int = -1,
    table: str = TABLE,
) -> str:
    return (
        f"g ({inputs}) => ({result} y) <{table}, int64 three = {{3}}, {positions}, "
        f"int64[1] last = {{{last}}}, float one = {{1}}, float zero = {{0}}> "
        f"{{ {make} u = Unsqueeze(i, last) e = Equal(u, p) {then} y = MatMul(v, t) }}"
    )


COMPARED = {
    "as jax.nn.one_hot writes it": (compared(MODULO), "int64[N,4] x", "float[N,4,2]"),
    "a row of positions": (
        compared(MODULO, positions="int64[1,3] p = {0,1,2}"),
        "int64[N,4] x",
        "float[N,4,2]",
    ),
    "a choice of one and zero": (
        compared(MODULO, then="v = Where(e, one, zero)"),
        "int64[N,4] x",
        "float[N,4,2]",
    ),
    "one index": (compared(MODULO, inputs="int64 x", result="float[2]"), "int64 x", "float[2]"),
}


@pytest.mark.parametrize(("source", "inputs", "result"), COMPARED.values(), ids=COMPARED.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_indices_that_are_compared(source: str, inputs: str, result: str, opset: int) -> None:
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        source,
        f"g ({inputs}) => ({result} y) <{TABLE}, int64 three = {{3}}, int64[1] last = {{-1}}> "
        f"{{ {MODULO} u = Unsqueeze(i, last) s = Squeeze(u, last) y = Gather<axis=0>(t, s) }}",
        opset=opset,
    )


CLIPPED = "a = Constant<value_int={low}>() c = Constant<value_int={high}>() i = Clip(x, a, c)"
COMPARED_KEPT = {
    "an index may be negative": compared(CLIPPED.format(low=-1, high=2)),
    "an index may be too large": compared(CLIPPED.format(low=0, high=3)),
    "other positions": compared(MODULO, positions="int64[3] p = {1,2,3}"),
    "the same position twice": compared(MODULO, positions="int64[3] p = {0,1,1}"),
    "another number for the position": compared(MODULO, then="v = Where(e, zero, one)"),
    "a column of positions": compared(
        MODULO,
        positions="int64[3,1] p = {0,1,2}",
        last=0,
        inputs="int64[3] x",
        result="float[3,2]",
    ),
    "floats that are compared": compared(
        "i = Relu(x)", inputs="float[N,4] x", positions="float[3] p = {0,1,2}"
    ),
}


@pytest.mark.parametrize("source", COMPARED_KEPT.values(), ids=COMPARED_KEPT.keys())
def test_keeps_other_comparisons(source: str) -> None:
    check_unchanged(fuse_onehot_matmul_to_gather, source)


@pytest.mark.parametrize("make", ["i = Identity(x)", CLIPPED.format(low=0, high=7)])
def test_a_promised_range(make: str) -> None:
    feeds = {"x": np.asarray([[0, 1, 2, 2]])}
    check_unchanged(fuse_onehot_matmul_to_gather, graph(make))
    check_rewrite(
        fuse_onehot_matmul_to_gather,
        graph(make),
        gathered(make),
        feeds=feeds,
        assume_in_range=True,
    )


def test_a_promise_does_not_help_a_table_that_is_not_finite() -> None:
    source = graph("i = Identity(x)", table=TABLE.replace("{1,", "{inf,"))
    check_unchanged(fuse_onehot_matmul_to_gather, source, assume_in_range=True)


KEPT = {
    "axis 0 of vectors": graph(
        "i = Constant<value_ints=[2,0,1]>()", inputs="float x", result="float[3,2]", axis=0
    ),
    "an axis inside": graph(MODULO, inputs="int64[N,3] x", result="float[N,3,2]", axis=1),
    "an index may be too large": graph("i = Neg(x)"),
    "an index may be too small": graph(
        "a = Constant<value_int=-4>() c = Constant<value_int=2>() i = Clip(x, a, c)"
    ),
    "a constant outside": graph(
        "i = Constant<value_ints=[0,3]>()", inputs="float x", result="float[2,2]"
    ),
    "float indices": graph("i = Abs(x)", inputs="float[N,4] x"),
    "values of 0 and 2": graph(MODULO, values=DEPTH.replace("{0,1}", "{0,2}")),
    "cold, not hot": graph(MODULO, values=DEPTH.replace("{0,1}", "{1,0}")),
    "an infinity in the table": graph(MODULO, table=TABLE.replace("{1,", "{inf,")),
    "NaN in the table": graph(MODULO, table=TABLE.replace("{1,", "{nan,")),
    "a batch of tables": graph(
        MODULO, table="float[1,3,2] t = {1,2,3,4,5,6}", inputs="int64[N,4] x"
    ),
    "a vector for a table": graph(MODULO, table="float[3] t = {1,2,3}", result="float[N,4]"),
    "one-hot vectors read elsewhere": graph(MODULO, rest="z = Neg(h)", more=", float[N,4,3] z"),
    "one-hot vectors are an output": graph(MODULO, more=", float[N,4,3] h"),
    "the table on the left": f"g (int64[2] x) => (float[3,3] y) <float[3,2] t = {{1,2,3,4,5,6}}, {DEPTH}> "
    f"{{ {MODULO} h = OneHot(i, three, v) y = MatMul(t, h) }}",
    "a table that callers may change": f"g (int64[N,4] x, float[3,2] t = {{1,2,3,4,5,6}}) => "
    f"(float[N,4,2] y) <{DEPTH}> {{ {MODULO} h = OneHot(i, three, v) y = MatMul(h, t) }}",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_onehot_matmul_to_gather, source)


def test_exactness_depends_on_promised_indices() -> None:
    promised = Indices(assume_in_range=True)
    assert fuse_onehot_matmul_to_gather.exactness_of(RuleStats()).kind == "exact"
    assert fuse_onehot_matmul_to_gather.exactness_of(RuleStats(), promised).kind == "assumes"


def test_the_option_by_name() -> None:
    model = text.parse(graph("i = Identity(x)"))
    optimize_model(model, pipeline="fuse-onehot-matmul-to-gather{assume-in-range}")
    assert "Gather" in [node.op_type for node in model.graph]
