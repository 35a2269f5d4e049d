"""Transposes between a Reshape that merges dims and one that splits them."""

from __future__ import annotations

import pytest
from rewrites import check_operators, check_rewrite, check_unchanged

from smelt.passes.layout.unmerge_transpose import unmerge_transpose


def graph(x: str, y: str, constants: str, body: str) -> str:
    return f"g (float[{x}] x) => (float[{y}] y) <{constants}> {{ {body} }}"


BODY = "m = Reshape(x, a) t = Transpose<perm=[{}]>(m) y = Reshape(t, b)"
UNMERGED = {
    "keys of an attention": (
        graph("2,4,7,16", "2,4,16,7", "int64[3] a = {8,7,16}, int64[4] b = {2,4,16,7}",
              BODY.format("0,2,1")), "0,1,3,2"),
    "a symbolic batch": (
        graph("B,4,7,16", "B,4,16,7", "int64[3] a = {-1,7,16}, int64[4] b = {-1,4,16,7}",
              BODY.format("0,2,1")), "0,1,3,2"),
    "dims merged at the end": (
        graph("5,2,3", "2,3,5", "int64[2] a = {5,6}, int64[3] b = {2,3,5}",
              BODY.format("1,0")), "1,2,0"),
    "three merged in the middle": (
        graph("5,2,1,3,4", "4,2,1,3,5", "int64[3] a = {5,6,4}, int64[5] b = {4,2,1,3,5}",
              BODY.format("2,1,0")), "4,1,2,3,0"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "perm"), UNMERGED.values(), ids=UNMERGED)
def test_unmerges(before: str, perm: str) -> None:
    after = before[: before.index("<int64")] + f"{{ y = Transpose<perm=[{perm}]>(x) }}"
    check_rewrite(unmerge_transpose, before, after)


SPLIT_OTHERWISE = {
    "other dims": (
        graph("2,4,7,16", "4,2,16,7", "int64[3] a = {8,7,16}, int64[4] b = {4,2,16,7}",
              BODY.format("0,2,1")), "4,2,7,16", "0,1,3,2"),
    "fewer dims": (
        graph("2,2,2,9,8", "2,4,8,9", "int64[3] a = {8,9,8}, int64[4] b = {2,4,8,9}",
              BODY.format("0,2,1")), "2,4,9,8", "0,1,3,2"),
    "one that is not known": (
        graph("B,2,2,9,8", "B,4,8,9", "int64[3] a = {-1,9,8}, int64[4] b = {-1,4,8,9}",
              BODY.format("0,2,1")), "0,4,9,8", "0,1,3,2"),
    "another dim than was merged": (
        graph("2,4,9,16", "8,16,3,3", "int64[3] a = {8,9,16}, int64[4] b = {8,16,3,3}",
              BODY.format("0,2,1")), "8,3,3,16", "0,3,1,2"),
    "dims of another size": (
        graph("2,6,4", "3,4,4", "int64[2] a = {4,12}, int64[3] b = {3,4,4}",
              BODY.format("1,0")), "4,3,4", "1,2,0"),
    "heads of nn.MultiheadAttention": (
        graph("7,2,12", "2,3,7,4", "int64[3] a = {7,6,4}, int64[4] b = {2,3,7,4}",
              BODY.format("1,0,2")), "7,2,3,4", "1,2,0,3"),
    "two dims that are not known, and stay": (
        graph("S,B,12", "B,3,S,4", "int64[3] a = {0,-1,4}, int64[4] b = {-1,3,S,4}",
              "n = Shape<start=0, end=1>(x) o = Constant<value_ints=[-1,3]>() "
              "f = Constant<value_ints=[4]>() c = Concat<axis=0>(o, n, f) "
              "m = Reshape(x, a) t = Transpose<perm=[1,0,2]>(m) y = Reshape(t, c)")
        .replace(", int64[4] b = {-1,3,S,4}", ""), "0,0,3,4", "1,2,0,3"),
    "a group that goes last": (
        graph("2,3,5", "5,3,2", "int64[2] a = {6,5}, int64[3] b = {5,3,2}",
              BODY.format("1,0")), "3,2,5", "2,0,1"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "sizes", "perm"), SPLIT_OTHERWISE.values(), ids=SPLIT_OTHERWISE)
def test_splits_first_where_it_is_split_otherwise(before: str, sizes: str, perm: str) -> None:
    interface = before[: before.index("<int64")]
    after = (
        f"{interface}<int64[{sizes.count(',') + 1}] s = {{{sizes}}}> "
        f"{{ r = Reshape(x, s) y = Transpose<perm=[{perm}]>(r) }}"
    )
    check_rewrite(unmerge_transpose, before, after)


def test_a_leading_dim_of_1_is_squeezed() -> None:
    """The keys of timm's vision transformers, one of three values cut from a stack."""
    interface = "g (float[1,B,4,7,16] x) => (float[B,4,16,7] y)"
    body = BODY.format("0,2,1")
    check_rewrite(
        unmerge_transpose,
        f"{interface} <int64[3] a = {{-1,7,16}}, int64[4] b = {{-1,4,16,7}}> {{ {body} }}",
        f"{interface} <int64[1] f = {{0}}> "
        "{ s = Squeeze(x, f) y = Transpose<perm=[0,1,3,2]>(s) }",
    )


MERGED_OTHERWISE = {
    "heads of one value for each row": ("B,3,5,4", "N,12", "-1,5,4", "-1,12", "1,0,2", "2,0,1,3"),
    "two dims split": ("2,4,7,16", "2,4,4,4,7", "8,7,16", "2,4,4,4,7", "0,2,1", "0,1,3,2"),
    "a dim that is copied alike": ("B,3,5,4", "5,B,12", "-1,5,4", "0,-1,12", "1,0,2", "2,0,1,3"),
    "sequence first": ("B,3,5,4", "5,B,12", "-1,5,4", "5,-1,12", "1,0,2", "2,0,1,3"),
}


@pytest.mark.parametrize(
    ("x", "y", "a", "b", "perm", "axes"), MERGED_OTHERWISE.values(), ids=MERGED_OTHERWISE
)
def test_the_first_merge_goes_where_another_follows(
    x: str, y: str, a: str, b: str, perm: str, axes: str
) -> None:
    """nn.MultiheadAttention merges batch and heads, moves them and merges heads and sizes."""
    rank = b.count(",") + 1
    check_rewrite(
        unmerge_transpose,
        graph(x, y, f"int64[3] a = {{{a}}}, int64[{rank}] b = {{{b}}}", BODY.format(perm)),
        graph(x, y, f"int64[{rank}] b = {{{b}}}",
              f"t = Transpose<perm=[{axes}]>(x) y = Reshape(t, b)"),
    )  # fmt: skip


def test_a_computed_shape_of_the_last_merge_has_no_zeros() -> None:
    interface = "g (float[B,3,S,4] x, float[S,B,12] o) => (float[S,B,12] y)"
    merge = "n = Shape<start=2>(x) a = Concat<axis=0>(w, n) m = Reshape(x, a)"
    shape = "b = Shape(o)"
    check_operators(
        unmerge_transpose,
        f"{interface} <int64[1] w = {{-1}}> "
        f"{{ {merge} t = Transpose<perm=[1,0,2]>(m) {shape} y = Reshape(t, b) }}",
        ["Shape", "Transpose", "Reshape"],
    )


KEPT = {
    "a merge after the Transpose that copies a dim": graph(
        "B,3,5,4", "5,M,4", "int64[3] a = {-1,5,4}, int64[3] b = {0,0,-1}", BODY.format("1,0,2")),
    "two groups": graph(
        "2,4,7,16", "7,16,2,4", "int64[2] a = {8,112}, int64[4] b = {7,16,2,4}",
        BODY.format("1,0")),
    "dims of nothing": graph(
        "0,4,7,16", "0,4,16,7", "int64[3] a = {0,7,16}, int64[4] b = {0,4,16,7}",
        "m = Reshape<allowzero=1>(x, a) t = Transpose<perm=[0,2,1]>(m) "
        "y = Reshape<allowzero=1>(t, b)"),
    "two open dims that change places": graph(
        "P,Q,7,16", "Q,P,16,7", "int64[3] a = {-1,7,16}, int64[2] f = {16,7}",
        "q = Shape<start=1, end=2>(x) p = Shape<start=0, end=1>(x) b = Concat<axis=0>(q, p, f) "
        + BODY.format("0,2,1")),
    "dims that may be of nothing, merged to an unknown size": (
        "g (float[P,4,N,16] x0, bool[N] c, int64[1] k) => (float[P,4,16,S] y) "
        "<int64[1] s = {16}> { x = Compress<axis=2>(x0, c) q = Shape<start=0, end=2>(x) "
        "n = Shape<start=2, end=3>(x) b = Concat<axis=0>(q, s, n) a = Concat<axis=0>(k, n, s) "
        + BODY.format("0,2,1") + " }"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(unmerge_transpose, source)


def test_a_merge_that_something_else_reads_stays() -> None:
    check_unchanged(
        unmerge_transpose,
        "g (float[2,4,7,16] x) => (float[2,4,16,7] y, float[8,7,16] m) "
        "<int64[3] a = {8,7,16}, int64[4] b = {2,4,16,7}> "
        "{ m = Reshape(x, a) t = Transpose<perm=[0,2,1]>(m) y = Reshape(t, b) }",
    )
