"""The trip count of a Loop, where it is known, and whether there is a first round."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.loop_rounds import MOST, runs_at_least_once, trip_count

CONSTANTS = (
    "int64 zero = {0}, int64 three = {3}, int64[1] four = {4}, int64[2] two = {3,3}, "
    f"int64 low = {{-2}}, int64 huge = {{{MOST}}}, int64 last = {{{MOST - 1}}}, "
    "bool yes = {1}, bool no = {0}"
)


def loop(count: str, first: str, body: str = "d = Identity(c)") -> ir.Node:
    model = text.parse(
        f"g (float[2] x, int64 n, bool b) => (float[2] y) <{CONSTANTS}> {{ y = Loop({count}, "
        f"{first}, x) <body = f (int64 i, bool c, float[2] v) => (bool d, float[2] w) "
        f"{{ {body} w = Neg(v) }}> }}",
        23,
    )
    return list(model.graph)[-1]


ENDS = {
    "the condition, copied": ("d = Identity(c)", 3),
    "the condition, copied twice": ("e = Identity(c) d = Identity(e)", 3),
    "a constant that is true": ("d = Constant<value = bool {1}>()", 3),
    "a true constant, copied": ("e = Constant<value = bool {1}>() d = Identity(e)", 3),
    "a constant that is false": ("d = Constant<value = bool {0}>()", None),
    "the opposite of the condition": ("d = Not(c)", None),
    "the condition and another": ("d = And(c, b)", None),
    "another condition": ("d = Identity(b)", None),
    "what a function of the same name returns": ("d = other.Identity(c)", None),
}


@pytest.mark.parametrize(("body", "count"), ENDS.values(), ids=ENDS)
def test_the_condition_that_a_round_returns(body: str, count: int | None) -> None:
    assert trip_count(loop("three", "yes", body)) == count


STARTS = {
    "without a condition": ("three", "", 3, True),
    "a true condition": ("three", "yes", 3, True),
    "a false condition": ("three", "no", None, False),
    "an unknown condition": ("three", "b", None, False),
    "one element": ("four", "", 4, True),
    "two elements": ("two", "", None, False),
    "no rounds": ("zero", "", 0, False),
    "fewer than none": ("low", "", 0, False),
    "an unknown count": ("n", "", None, False),
    "no count": ("", "yes", None, True),
    "no count, an unknown condition": ("", "b", None, False),
    "a count that means for ever": ("huge", "", None, True),
    "the largest count": ("last", "", MOST - 1, True),
}


@pytest.mark.parametrize(("count", "first", "made", "any_"), STARTS.values(), ids=STARTS)
def test_counts_and_first_conditions(count: str, first: str, made: int | None, any_: bool) -> None:
    node = loop(count, first)
    assert trip_count(node) == made
    assert runs_at_least_once(node) is any_
