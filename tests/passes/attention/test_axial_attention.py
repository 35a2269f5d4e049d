"""Attention along one of two axes (axial, blocks of LongT5, windows of Hiera) becomes one
operator."""

from collections.abc import Sequence

import numpy as np
import pytest
from rewrites import check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention
from smelt.runtime.runner import open_runner

BESIDE = ("0,1,3,2,4", "0,1,3,4,2")
FIRST = ("0,3,2,1,4", "0,3,2,4,1")


def graph(
    shape: str = "2,3,5,24",
    split: str = "0,0,0,4,6",
    perms: tuple[str, str] = BESIDE,
    bias: str = "",
    added: str = "n = Identity(d)",
    keys: str = "",
    merge: str = "0,0,0,24",
    end: str = "",
) -> str:
    """Return attention of ``x`` to ``z``, whose shape is ``keys`` or that of ``x``."""
    first, last = perms
    table = f", float[{bias}] table = {{{numbers(bias)}}}" if bias else ""
    return (
        f"g (float[{shape}] x, float[{keys or shape}] z) => (float[a,b,s,c] y) "
        f"<int64[5] split = {{{split}}}, int64[4] merge = {{{merge}}}, float c = {{0.35}}{table}> {{ "
        f"r = Reshape(x, split) t = Reshape(z, split) q = Transpose<perm=[{first}]>(r) "
        f"k = Transpose<perm=[{last}]>(t) v = Transpose<perm=[{first}]>(t) "
        f"s = MatMul(q, k) d = Mul(s, c) {added} p = Softmax<axis=-1>(n) {end} "
        f"o = MatMul(p, v) u = Transpose<perm=[{first}]>(o) y = Reshape(u, merge) }}"
    )


def numbers(shape: str) -> str:
    size = int(np.prod([int(dim) for dim in shape.split(",")]))
    return ",".join(str(i % 7) for i in range(size))


def check_one_attention(source: str, *shapes: Sequence[int]) -> list[str]:
    before = text.parse(source, 23)
    model = optimize(before)
    kinds = [node.op_type for node in model.graph]
    assert kinds.count("Attention") == 1
    assert not {"Softmax", "MatMul"} & set(kinds)
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    found, expected = (open_runner(m)(*inputs)[0] for m in (model, before))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    return kinds


ROW = (2, 3, 5, 24)
ADDED = "n = Add(d, table)"


@pytest.mark.parametrize("bias", ["5,5", "4,5,5", "1,4,5,5", "1,1,4,5,5", "2,3,4,5,5", "2,3,1,5,5"])
def test_a_bias_of_all_sequences_or_of_each(bias: str) -> None:
    kinds = check_one_attention(graph(bias=bias, added=ADDED), ROW, ROW)
    assert "Transpose" not in kinds


@pytest.mark.parametrize("shape", ["2,3,5,24", "N,3,5,24", "N,M,5,24", "N,3,L,24", "N,M,L,24"])
def test_heads_are_split_off_inside(shape: str) -> None:
    kinds = check_one_attention(graph(shape), ROW, ROW)
    assert "Transpose" not in kinds
    assert kinds.count("Reshape") == 3  # of queries, keys (values, too) and the result


def test_queries_and_keys_may_be_of_other_lengths() -> None:
    check_one_attention(graph(keys="2,3,7,24"), ROW, (2, 3, 7, 24))


@pytest.mark.parametrize("shape", ["2,5,3,24", "N,5,3,24"])
def test_the_sequence_may_come_before_the_other_axis(shape: str) -> None:
    check_one_attention(graph(shape, perms=FIRST), (2, 5, 3, 24), (2, 5, 3, 24))


def test_the_result_may_be_one_row_for_all() -> None:
    check_one_attention(graph(merge="1,2,15,24"), ROW, ROW)


def factor(shape: str) -> str:
    """Return the graph with factors of the scores of the shape ``shape``."""
    return graph().replace("float c = {0.35}", f"float[{shape}] c = {{{numbers(shape)}}}")


KEPT = {
    "a factor of rank 5": factor("1,1,1,1,1"),
    "a factor for each row": factor("3,1,1,1"),
    "a factor for each sequence": factor("2,3,1,1,1"),
    "a bias of rank 6": graph(bias="1,1,1,4,5,5", added="n = Add(d, table)").replace("(float[a,b,s,c] y)", "(float[o,a,b,s,c] y)").replace("o = MatMul(p, v) u = Transpose<perm=[0,1,3,2,4]>(o)", "e = MatMul(p, v) zero = Constant<value_ints=[0]>() o = Squeeze(e, zero) u = Transpose<perm=[0,1,3,2,4]>(o)").replace("(float[o,a,b,s,c] y)", "(float[a,b,s,c] y)"),
    "a bias of one axis": graph(bias="2,1,4,5,5", added=ADDED),
    "a bias of rank 4 for each": graph("2,3,5,24", bias="3,1,5,5", added="n = Add(d, table)"),
    "a softmax over queries": graph(end="").replace("axis=-1", "axis=3"),
    "scores that are handed on": graph().replace("(float[a,b,s,c] y)", "(float[a,b,s,c] y, float[a,b,h,s,t] s)"),
    "a factor for each head": graph(bias="4,1,1", added="n = Mul(d, table)"),
    "batches of another number": graph("2,3,5,24", keys="2,1,5,24"),
    "a length that may be 0": graph(keys="2,3,N,24").replace("t = Reshape(z, split)", "one = Constant<value_ints=[1]>() end = Constant<value_ints=[99]>() axis = Constant<value_ints=[2]>() w = Slice(z, one, end, axis) t = Reshape(w, split)"),
    "a result merged otherwise": graph(perms=FIRST).replace("u = Transpose<perm=[0,3,2,1,4]>", "u = Transpose<perm=[0,2,3,1,4]>"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(fuse_attention, source)


def test_below_the_opset_of_attention_it_stays() -> None:
    check_unchanged(fuse_attention, graph(), opset=22)
