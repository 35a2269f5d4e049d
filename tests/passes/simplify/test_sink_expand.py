"""Expands before operators that broadcast are dropped or moved behind them."""

from __future__ import annotations

import pytest
from fixpoint import check_text
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.sink_expand import sink_expand

S = "int64[3] s = {2,3,4}"
GONE = {
    "beside an operand of the whole shape": (
        f"g (float[2,3,4] x, float[1,3,1] c) => (float[2,3,4] y) <{S}> "
        "{ e = Expand(c, s) y = Sub(x, e) }",
        "g (float[2,3,4] x, float[1,3,1] c) => (float[2,3,4] y) { y = Sub(x, c) }",
    ),
    "of a lower rank": (
        f"g (float[2,3,4] x, float[4] c) => (float[2,3,4] y) <{S}> "
        "{ e = Expand(c, s) y = Pow(e, x) }",
        "g (float[2,3,4] x, float[4] c) => (float[2,3,4] y) { y = Pow(c, x) }",
    ),
    "dims of two operands together": (
        f"g (float[2,1,4] x, float[1,3,1] c) => (float[2,3,4] y) <{S}> "
        "{ e = Expand(c, s) y = Mul(x, e) }",
        "g (float[2,1,4] x, float[1,3,1] c) => (float[2,3,4] y) { y = Mul(x, c) }",
    ),
    "a symbolic batch": (
        "g (float[B,3] x, float[3] c, int64[2] s) => (float[B,3] y) "
        "{ t = Shape(x) e = Expand(c, t) y = Add(x, e) }",
        "g (float[B,3] x, float[3] c, int64[2] s) => (float[B,3] y) { y = Add(x, c) }",
    ),
    "to the shape of an operand of unknown dims": (
        "g (bool[B,1,1,K] c, float[B,2,S,P] x, float low) => (float[?,?,?,?] y) "
        "{ t = Shape(x) e = Expand(c, t) y = Where(e, low, x) }",
        "g (bool[B,1,1,K] c, float[B,2,S,P] x, float low) => (float[?,?,?,?] y) "
        "{ y = Where(c, low, x) }",
    ),
    "to the shape of an operand, of which it has more dims": (
        "g (float[A,B,3] c, float[B,3] x) => (float[?,?,?] y) "
        "{ t = Shape(x) e = Expand(c, t) y = Sub(x, e) }",
        "g (float[A,B,3] c, float[B,3] x) => (float[?,?,?] y) { y = Sub(x, c) }",
    ),
    "one that something else reads": (
        f"g (float[2,3,4] x, float[1,3,1] c) => (float[2,3,4] y, float[2,3,4] e) <{S}> "
        "{ e = Expand(c, s) y = Add(x, e) }",
        f"g (float[2,3,4] x, float[1,3,1] c) => (float[2,3,4] y, float[2,3,4] e) <{S}> "
        "{ e = Expand(c, s) y = Add(x, c) }",
    ),
}


@pytest.mark.parametrize(("before", "after"), GONE.values(), ids=GONE)
def test_broadcasts_instead(before: str, after: str) -> None:
    check_rewrite(sink_expand, before, after)


LATER = {
    "a choice between numbers": (
        f"g (bool[1,3,1] c) => (float[2,3,4] y) <{S}, float a = {{1}}, float b = {{2}}> "
        "{ e = Expand(c, s) y = Where(e, a, b) }",
        f"g (bool[1,3,1] c) => (float[2,3,4] y) <{S}, float a = {{1}}, float b = {{2}}> "
        "{ w = Where(c, a, b) y = Expand(w, s) }",
    ),
    "a Cast": (
        f"g (int32[1,3,1] c) => (float[2,3,4] y) <{S}> {{ e = Expand(c, s) y = Cast<to=1>(e) }}",
        f"g (int32[1,3,1] c) => (float[2,3,4] y) <{S}> {{ w = Cast<to=1>(c) y = Expand(w, s) }}",
    ),
}


@pytest.mark.parametrize(("before", "after"), LATER.values(), ids=LATER)
def test_expands_afterwards(before: str, after: str) -> None:
    check_rewrite(sink_expand, before, after)


KEPT = {
    "that gives a dim to the result": f"g (float[2,1,4] x, float[1,1,1] c) => (float[2,3,4] y) <{S}> "
    "{ e = Expand(c, s) y = Add(x, e) }",
    "to a size that is not known": "g (float[B,3] x, float[3] c, int64[2] s) => (float[P,Q] y) "
    "{ e = Expand(c, s) y = Add(x, e) }",
    "to a part of the shape of an operand": "g (float[1] c, float[B,P] x) => (float[?,?] y) "
    "{ t = Shape<end=1>(x) e = Expand(c, t) y = Add(x, e) }",
    "to the shape of what is no operand": "g (float[1,1] c, float[B,P] x, float[C,Q] z) "
    "=> (float[?,?] y) { t = Shape(z) e = Expand(c, t) y = Add(x, e) }",
    "before a choice, read elsewhere": f"g (bool[1,3,1] c) => (float[2,3,4] y, bool[2,3,4] e) "
    f"<{S}, float a = {{1}}, float b = {{2}}> {{ e = Expand(c, s) y = Where(e, a, b) }}",
    "beside a number of more dims": "g (float[3] c) => (float[1,2,3] y) "
    "<int64[2] s = {2,3}, float[1,1,1] a = {1}> { e = Expand(c, s) y = Add(e, a) }",
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(sink_expand, source)


def test_an_expand_that_lost_a_reader_is_tried_again() -> None:
    """The sum then reads the unexpanded row, so the power is the only reader of the Expand."""
    check_text(
        "g (float[N,1] x) => (float[N,4] y) <float three = {3}, float k = {0.5}, "
        "int64[2] wide = {1, 4}> "
        "{ e = Expand(x, wide) p = Pow(e, three) m = Mul(p, k) y = Add(e, m) }",
        20,
    )
