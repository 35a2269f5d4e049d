"""Sizes of a run compute as numbers do, and answer only what their bounds decide."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.ir.rows import rows_taken
from smelt.program.run_rows import count_rows, first_row
from smelt.program.run_sizes import Dim, Size, Undecided, highest, larger, lowest, same, smaller

B, S = Size.named("dim0", 1, 16), Size.named("dim1", 2, 9)
LEAVES = st.one_of(st.sampled_from([B, S]), st.integers(0, 12))
STEPS: dict[str, Callable[[Dim, Dim], Dim]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
}


def value(size: Dim, b: int, s: int) -> int:
    """What the C expression of ``size`` comes to."""
    return int(eval(str(size).replace("/", "//"), {"dim0": b, "dim1": s}))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), LEAVES), max_size=4), LEAVES, st.data())
def test_the_text_comes_to_what_numbers_come_to(
    steps: list[tuple[str, Dim]], start: Dim, data: st.DataObject
) -> None:
    b, s = data.draw(st.integers(1, 16)), data.draw(st.integers(2, 9))
    size, number = start, value(start, b, s)
    for name, operand in steps:
        try:
            size = STEPS[name](size, operand)
        except (Undecided, ZeroDivisionError):
            continue
        number = STEPS[name](number, value(operand, b, s))
    assert value(size, b, s) == number
    assert lowest(size) <= number <= highest(size)


def test_the_larger_and_the_smaller_are_chosen_by_the_run() -> None:
    assert str(larger(B, S)) == "(dim0 > dim1 ? dim0 : dim1)"
    assert str(smaller(B, 4)) == "(dim0 < 4 ? dim0 : 4)"
    assert (larger(B, S).low, larger(B, S).high) == (2, 16)
    assert (smaller(B, 4).low, smaller(B, 4).high) == (1, 4)
    assert (larger(B, 20), smaller(S, 10)) == (20, S)


def test_equal_polynomials_are_the_same() -> None:
    assert same(B * S * 4 // 2, S * (B + B))
    assert (B + 1) * (B + 1) - B * B == 2 * B + 1
    assert B - B == 0
    assert isinstance(B * S // S // B, int)
    assert hash(B * 2) == hash(B + B)


def test_comparisons_that_the_bounds_decide_are_answered() -> None:
    assert B > 0
    assert B < 17
    assert B != 17
    assert 0 not in (B, S)
    assert max(S, 1) is S
    assert larger(B, 20) == 20
    assert not B < S - 9


@pytest.mark.parametrize(
    "ask",
    [
        lambda: B == 1,
        lambda: B < S,
        lambda: bool(B - 1),
        lambda: int(B),
        lambda: range(B),
        lambda: [0] * B,
        lambda: np.arange(B),
        lambda: np.asarray([1, B], dtype=np.int64),
        lambda: np.prod((B, 2), dtype=np.int64),
        lambda: B / 2,
        lambda: 1 in (B, 3),
        lambda: min(B, 4),
        lambda: f"{B:d}" if B == 4 else "",
        lambda: 4 // (B - 1),
    ],
)
def test_comparisons_that_only_a_run_decides_raise(ask: Callable[[], object]) -> None:
    with pytest.raises(Undecided):
        ask()


def test_a_comparison_that_may_differ_is_not_the_same() -> None:
    assert not same(B, 1)
    assert not same((B, 4), (1, 4))
    assert same((B, 4), (B, 4))


@settings(max_examples=100, deadline=None)
@given(
    st.integers(-12, 12),
    st.integers(-12, 12) | st.sampled_from([2**63 - 1, -(2**63)]),
    st.sampled_from([1, 2, 3, -1, -2]),
    st.integers(2, 9),
)
def test_rows_of_a_slice(start: int, end: int, step: int, size: int) -> None:
    cut = (start, end, step)
    rows = rows_taken(size, cut)
    assert count_rows(size, cut) == len(rows)
    assert first_row(size, cut) == rows.start


def test_texts_bind_as_c_reads_them() -> None:
    assert f"{B + 1} * 4" == "(dim0 + 1) * 4"
    assert f"x / {B * 4}" == "x / (dim0 * 4)"
    assert str(3 - B) == "(-dim0 + 3)"
    assert str((S - 3 + 1) // 2) == "((dim1 - 2) / 2)"
