"""Loops whose condition only counts get a trip count; others keep their condition."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.control_flow.uplift_while_to_for import uplift_while_to_for


def loop(
    condition: str, *, limit: str = "", first: str = "go", start: int = 0, dtype: str = "int64"
) -> str:
    """Return a loop that doubles p and stacks it, with a counter i that grows by ``one`` to j."""
    return (
        f"g (float[2] x, int64 n) => (float[2] y, float[R,2] h) <int64 five = {{5}}, "
        f"{dtype} zero = {{{start}}}, {dtype} one = {{1}}, {dtype} two = {{2}}, {dtype} less = {{-1}}, "
        f"bool go = {{1}}, bool never = {{0}}, {dtype} four = {{4}}, float most = {{4}}, {dtype} large = {{20000000}}, "
        "float huge = {20000000}> { "
        f"i_last, y, h = Loop({limit}, {first}, zero, x) <body = body (int64 k, bool c, "
        f"{dtype} i, float[2] p) => (bool co, {dtype} j, float[2] q, float[2] o) "
        f"{{ q = Add(p, p) o = Identity(q) {condition} }}> }}"
    )


COUNTED = {
    "below a number": ("j = Add(i, one) co = Less(j, four)", 4),
    "of the number before": ("j = Add(i, one) co = Less(i, four)", 5),
    "up to a number": ("j = Add(two, i) co = LessOrEqual(j, four)", 3),
    "a number above": ("j = Add(i, one) co = Greater(four, j)", 4),
    "down": ("j = Sub(i, two) m = Sub(zero, four) co = GreaterOrEqual(j, m)", 3),
    "as floats": ("j = Add(i, one) f = Cast<to=1>(j) co = Less(f, most)", 4),
    "rounds": ("j = Identity(i) r = Cast<to=1>(k) co = Less(r, most)", 5),
    "the first of two": ("j = Add(i, one) a = Less(j, four) b = Less(k, five) co = And(a, b)", 4),
    "while it goes on": ("j = Add(i, one) a = Less(j, four) co = And(a, c)", 4),
    "while a constant holds": ("j = Add(i, one) a = Less(j, four) co = And(a, go)", 4),
    "until a constant does not hold": ("j = Add(i, one) a = Less(j, four) co = And(a, never)", 1),
    "once at least": ("j = Add(i, one) co = Less(j, less)", 1),
}


@pytest.mark.parametrize(("condition", "rounds"), COUNTED.values(), ids=COUNTED.keys())
def test_counts(condition: str, rounds: int) -> None:
    counter = condition[: condition.index(")") + 1]
    after = loop(f"{counter} val_0 = Identity(c)", limit="rounds", first="")
    after = after.replace("bool co", "bool val_0")
    after = after.replace("<int64 five", f"<int64 rounds = {{{rounds}}}, int64 five")
    check_rewrite(uplift_while_to_for, loop(condition), after, feeds=FEEDS)


FEEDS = {"x": np.asarray([1, -2], np.float32), "n": np.asarray(3)}

LEFT = {
    "data": "j = Add(i, one) t = ReduceSum<keepdims=0>(q) co = Less(t, most)",
    "a step of the run": "j = Add(i, n) co = Less(j, four)",
    "a number of the run": "j = Add(i, one) co = Less(j, n)",
    "products": "j = Mul(i, two) co = Less(j, four)",
    "a counter that is set anew": "j = Add(k, one) co = Less(i, four)",
    "a truth of the run": "j = Add(i, one) a = Less(j, four) co = And(a, run)",
    "no end": "j = Sub(i, one) co = Less(j, four)",
    "one of two by data": (
        "j = Add(i, one) a = Less(j, four) t = ReduceSum<keepdims=0>(q) b = Less(t, most) co = And(a, b)"
    ),
    "more than floats hold": "j = Add(i, one) f = Cast<to=1>(j) co = Less(f, huge)",
}


@pytest.mark.parametrize("condition", LEFT.values(), ids=LEFT.keys())
def test_leaves(condition: str) -> None:
    source = loop(condition).replace("int64 n)", "int64 n, bool run)")
    check_unchanged(uplift_while_to_for, source)


def test_leaves_what_may_not_begin() -> None:
    condition = "j = Add(i, one) co = Less(j, four)"
    source = loop(condition).replace("int64 n)", "int64 n, bool run)").replace(", go,", ", run,")
    check_unchanged(uplift_while_to_for, source)


def test_leaves_numbers_that_wrap_around() -> None:
    condition = "j = Add(i, one) co = Less(j, four)"
    source = loop(condition, start=-2147483648, dtype="int32").replace(
        "int32 one = {1}", "int32 one = {2000000000}"
    )
    check_unchanged(uplift_while_to_for, source)


def test_the_lower_limit_counts() -> None:
    before = loop("j = Add(i, one) co = Less(j, four)", limit="two")
    after = loop("j = Add(i, one) val_0 = Identity(c)", limit="two", first="")
    check_rewrite(uplift_while_to_for, before, after.replace("bool co", "bool val_0"), feeds=FEEDS)


def test_a_limit_below_0_is_no_round() -> None:
    before = loop("j = Add(i, one) co = Less(j, four)", limit="less")
    after = loop("j = Add(i, one) val_0 = Identity(c)", limit="zero", first="")
    check_rewrite(uplift_while_to_for, before, after.replace("bool co", "bool val_0"), feeds=FEEDS)


def test_c_stacks_as_many_rows_as_there_are_rounds() -> None:
    model = text.parse(loop("j = Add(i, one) co = Less(j, four)"))
    _, rows = smelt.compile(model, target="c")(FEEDS["x"], FEEDS["n"])
    np.testing.assert_array_equal(rows, np.outer([2, 4, 8, 16], FEEDS["x"]))
