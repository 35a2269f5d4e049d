"""Rows of a table, by one-hot vectors."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.tensors.fuse_onehot_matmul_to_gather import fuse_onehot_matmul_to_gather
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
