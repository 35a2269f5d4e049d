"""Consecutive dims are read by one Shape."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.fuse_shape_slice import fuse_shape_slice

G = "g (float[B,S,16] x) => (int64[{}] y)"
NUMBERS = (
    "<int64 zero = {0}, int64 one = {1}, int64 last = {-1}, int64[1] v0 = {0}, int64[1] v1 = {1}, "
    "int64[1] v2 = {2}, int64[2] v01 = {0,1}, int64[2] v10 = {1,0}, int64[1] far = {99}, "
    "int64[1] sixteen = {16}, int64[1] end = {-1}> "
)

READ = {
    "a number made a vector": (
        "1",
        "s = Shape(x) d = Gather(s, one) y = Unsqueeze(d, v0)",
        "start=1,end=2",
    ),
    "by a Reshape": ("1", "s = Shape(x) d = Gather(s, zero) y = Reshape(d, v1)", "end=1"),
    "a place of a vector": ("1", "s = Shape(x) y = Gather(s, v1)", "start=1,end=2"),
    "two places": ("2", "s = Shape(x) y = Gather(s, v01)", "end=2"),
    "a cut": ("2", "s = Shape(x) y = Slice(s, v1, far, v0)", "start=1"),
    "a cut from the end": ("2", "s = Shape(x) y = Slice(s, v0, end)", "end=2"),
    "a cut of a cut": ("1", "s = Shape<start=1>(x) y = Slice(s, v0, v1)", "start=1,end=2"),
    "dims put together": (
        "2",
        "s = Shape(x) b = Gather(s, v0) c = Gather(s, v1) y = Concat<axis=0>(b, c)",
        "end=2",
    ),
    "a dim and a number that is one": (
        "2",
        "c = Shape<start=1,end=2>(x) y = Concat<axis=0>(c, sixteen)",
        "start=1",
    ),
}


@pytest.mark.parametrize(("rank", "body", "cut"), READ.values(), ids=READ.keys())
def test_is_read_at_once(rank: str, body: str, cut: str) -> None:
    g = G.format(rank)
    check_rewrite(
        fuse_shape_slice,
        f"{g} {NUMBERS} {{ {body} }}",
        f"{g} {{ y = Shape<{cut}>(x) }}",
        modes=("normal",),
    )


def test_all_dims_are_a_whole_shape() -> None:
    g = G.format("3")
    check_rewrite(
        fuse_shape_slice,
        f"{g} {NUMBERS} {{ s = Shape<end=1>(x) r = Shape<start=1>(x) y = Concat<axis=0>(s, r) }}",
        f"{g} {{ y = Shape(x) }}",
        modes=("normal",),
    )


def test_dims_of_equal_size_stand_for_each_other() -> None:
    g = "g (float[B,S] x, float[S,B] z) => (int64[2] y)"
    check_rewrite(
        fuse_shape_slice,
        f"{g} {{ b = Shape<end=1>(x) s = Shape<end=1>(z) y = Concat<axis=0>(b, s) }}",
        f"{g} {{ y = Shape(x) }}",
        modes=("normal",),
    )


def test_a_gather_with_other_readers_stays() -> None:
    g = "g (float[B,S,16] x) => (int64[1] y, int64 d)"
    check_rewrite(
        fuse_shape_slice,
        f"{g} {NUMBERS} {{ s = Shape(x) d = Gather(s, one) y = Unsqueeze(d, v0) }}",
        f"{g} <int64 one = {{1}}> {{ s = Shape(x) d = Gather(s, one) y = Shape<start=1,end=2>(x) }}",
        modes=("normal",),
    )


KEPT = {
    "dims in another order": ("2", "s = Shape(x) y = Gather(s, v10)"),
    "dims apart": ("2", "b = Shape<end=1>(x) y = Concat<axis=0>(b, sixteen)"),
    "a dim twice": ("2", "b = Shape<end=1>(x) y = Concat<axis=0>(b, b)"),
    "more than a dim": ("1", "b = Shape<end=1>(x) c = Add(b, v1) y = Slice(c, v0, v1)"),
    "a number that stays one": ("", "s = Shape(x) y = Gather(s, one)"),
}


@pytest.mark.parametrize(("rank", "body"), KEPT.values(), ids=KEPT.keys())
def test_keeps(rank: str, body: str) -> None:
    g = G.format(rank) if rank else "g (float[B,S,16] x) => (int64 y)"
    check_unchanged(fuse_shape_slice, f"{g} {NUMBERS} {{ {body} }}")


def test_keeps_other_sizes() -> None:
    check_unchanged(
        fuse_shape_slice,
        "g (float[B,S] x, float[T] z) => (int64[2] y) "
        "{ b = Shape<end=1>(x) t = Shape(z) y = Concat<axis=0>(b, t) }",
    )


def test_keeps_dims_before_shape_can_cut() -> None:
    check_unchanged(
        fuse_shape_slice,
        f"g (float[B,S,16] x) => (int64[1] y) {NUMBERS} {{ s = Shape(x) y = Gather(s, v1) }}",
        opset=14,
    )


def test_keeps_what_is_no_vector_of_sizes() -> None:
    check_unchanged(
        fuse_shape_slice,
        f"g (float[B,S,16] x) => (float[1] y) {NUMBERS} "
        "{ s = Shape(x) f = Cast<to=1>(s) y = Gather(f, v1) }",
    )
