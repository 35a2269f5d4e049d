"""Images interleaved along rows and columns become DepthToSpace."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.tensors.concat_to_pixel_shuffle import concat_to_pixel_shuffle

IMAGES = "float[N,C,3,2] a, float[N,C,3,2] b, float[N,C,3,2] c, float[N,C,3,2] d"
DIMS = {2: "[N,C,6,2]", 3: "[N,C,3,4]", 0: "[N,C,6,4]"}


def turns(result: str, values: Sequence[str], axis: int, shape: str) -> str:
    """Return text that interleaves ``values`` along ``axis``."""
    lines = [f"{result}_axis = Constant<value_ints=[{axis + 1}]>()"]
    lines += [f"{result}_{v} = Unsqueeze({v}, {result}_axis)" for v in values]
    stacked = ", ".join(f"{result}_{v}" for v in values)
    lines += [
        f"{result}_stack = Concat<axis={axis + 1}>({stacked})",
        f"{result}_dims = Constant<value_ints={shape}>()",
        f"{result} = Reshape({result}_stack, {result}_dims)",
    ]
    return "\n".join(lines)


ROWS_FIRST = (
    turns("p", "ab", 2, "[0,0,6,2]")
    + turns("q", "cd", 2, "[0,0,6,2]")
    + turns("y", "pq", 3, "[0,0,6,4]")
)
COLUMNS_FIRST = (
    turns("p", "ab", 3, "[0,0,3,-1]")
    + turns("q", "cd", 3, "[0,0,3,-1]")
    + turns("y", "pq", 2, "[0,0,-1,4]")
)


@pytest.mark.parametrize(
    ("body", "order"),
    [(ROWS_FIRST, "a, c, b, d"), (COLUMNS_FIRST, "a, b, c, d")],
    ids=["rows", "columns"],
)
@pytest.mark.parametrize("dtype", ["float", "float16", "uint8"])
def test_becomes_a_depth_to_space(body: str, order: str, dtype: str) -> None:
    images = IMAGES.replace("float", dtype)
    check_rewrite(
        concat_to_pixel_shuffle,
        f"g ({images}) => ({dtype}[N,C,6,4] y) {{ {body} }}",
        f"g ({images}) => ({dtype}[N,C,6,4] y) {{ "
        f'j = Concat<axis=1>({order}) y = DepthToSpace<blocksize=2, mode="DCR">(j) }}',
    )


@pytest.mark.parametrize("axis", [2, -2])
def test_operators_that_interleave(axis: int) -> None:
    check_rewrite(
        concat_to_pixel_shuffle,
        f"g ({IMAGES}) => (float[N,C,6,4] y) {{ p = smelt.ConcatInterleave<axis={axis}>(a, b) "
        f"q = smelt.ConcatInterleave<axis={axis}>(c, d) y = smelt.ConcatInterleave<axis=3>(p, q) }}",
        f"g ({IMAGES}) => (float[N,C,6,4] y) {{ "
        'j = Concat<axis=1>(a, c, b, d) y = DepthToSpace<blocksize=2, mode="DCR">(j) }',
    )


@pytest.mark.parametrize(("inner", "outer"), [(2, 2), (1, 3), (2, 1)])
def test_operators_that_interleave_other_axes_stay(inner: int, outer: int) -> None:
    p = f"smelt.ConcatInterleave<axis={inner}>"
    y = f"smelt.ConcatInterleave<axis={outer}>"
    images = IMAGES.replace("[N,C", "[2,3")
    check_unchanged(
        concat_to_pixel_shuffle,
        f"g ({images}) => (y) {{ p = {p}(a, b) q = {p}(c, d) y = {y}(p, q) }}",
    )


def test_one_image_four_times() -> None:
    body = (
        turns("p", "ab", 2, "[0,0,6,2]").replace("(b,", "(a,")
        + turns("q", "cd", 2, "[0,0,6,2]").replace("(c,", "(a,").replace("(d,", "(a,")
        + turns("y", "pq", 3, "[0,0,6,4]")
    )
    check_rewrite(
        concat_to_pixel_shuffle,
        f"g (float[1,2,3,2] a) => (float[1,2,6,4] y) {{ {body} }}",
        "g (float[1,2,3,2] a) => (float[1,2,6,4] y) { "
        'j = Concat<axis=1>(a, a, a, a) y = DepthToSpace<blocksize=2, mode="DCR">(j) }',
    )


def test_nine_images() -> None:
    names = "abcdefghi"
    images = ", ".join(f"float[N,2,H,W] {name}" for name in names)
    body = "".join(
        turns(p, names[3 * i : 3 * i + 3], 2, "[0,2,-1,0]").replace(",0]", ",1]")
        for i, p in enumerate("pqr")
    )
    images = images.replace("W", "1")
    check_rewrite(
        concat_to_pixel_shuffle,
        f"g ({images}) => (float[N,2,h,3] y) {{ {body} {turns('y', 'pqr', 3, '[0,2,-1,3]')} }}",
        f"g ({images}) => (float[N,2,h,3] y) {{ j = Concat<axis=1>(a,d,g,b,e,h,c,f,i) "
        'y = DepthToSpace<blocksize=3, mode="DCR">(j) }',
    )


def kept(body: str = ROWS_FIRST, more: str = "", dtype: str = "float", y: str = "6,4") -> str:
    images = IMAGES.replace("float", dtype)
    return f"g ({images}) => ({dtype}[N,C,{y}] y{more}) {{ {body} }}"


KEPT = {
    "an inner value is an output": kept(more=", float[N,C,6,2] p"),
    "an inner value has another reader": kept(
        f"{ROWS_FIRST} z = Neg(q)", more=", float[N,C,6,2] z"
    ),
    "a stack is an output": kept(more=", float[N,C,3,2,2] p_stack"),
    "an unsqueezed image has another reader": kept(
        f"{ROWS_FIRST} z = Neg(q_c)", more=", float[N,C,3,1,2] z"
    ),
    "rows twice": kept(
        turns("p", "ab", 2, "[0,0,6,2]")
        + turns("q", "cd", 2, "[0,0,6,2]")
        + turns("y", "pq", 2, "[0,0,12,2]"),
        y="12,2",
    ),
    "one after the other, not in turns": kept(
        turns("p", "ab", 1, "[0,-1,3,2]").replace("axis + 1", "axis")
        + turns("q", "cd", 1, "[0,-1,3,2]")
        + turns("y", "pq", 3, "[0,-1,3,4]"),
        y="3,4",
    ),
    "no DepthToSpace of bfloat16": kept(dtype="bfloat16"),
    "no DepthToSpace of int64": kept(dtype="int64"),
    "two groups of one": kept(
        turns("p", "ab", 2, "[0,0,6,2]") + "y = Concat<axis=3>(p, p)", y="6,4"
    ),
    "read by a subgraph": kept(
        f"{ROWS_FIRST} t = Constant<value_int=1>() u = Cast<to=9>(t) z = If<then_branch = "
        "h () => (float[N,C,6,2] r) { r = Neg(p) }, else_branch = "
        "k () => (float[N,C,6,2] s) { s = Abs(p) }>(u)",
        more=", float[N,C,6,2] z",
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(concat_to_pixel_shuffle, graph)
