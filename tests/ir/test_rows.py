"""Rows that a Slice takes, counted for numbers and for open sizes."""

from __future__ import annotations

from itertools import product

import onnx_ir as ir
import pytest

from smelt.ir.rows import FIRST, LAST, LONGEST, count_open_rows, rows_taken
from smelt.ir.shapes.rows_between import rows_between
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic, symbolic_dim
from smelt.ir.symbolic_dims.dims import size_of

STARTS = (0, 1, 2, 5, -1, -2, -3, LAST, FIRST, LONGEST)
ENDS = (0, 1, 3, 6, -1, -2, -4, LAST, FIRST, LONGEST)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2, -3])
def test_open_rows_are_those_of_each_size(step: int) -> None:
    functions = {"Min": min, "Max": max, "floor": int}
    counted = 0
    for start, end in product(STARTS, ENDS):
        text = count_open_rows("N", (start, end, step))
        if text is None:
            continue
        counted += 1
        for size in range(9):
            rows = eval(text, {"__builtins__": {}}, {**functions, "N": size})
            assert rows == len(rows_taken(size, (start, end, step))), (text, size)
    assert counted == (len(STARTS) * len(ENDS) if step > 0 else 56)


def test_rows_that_are_cut_again_have_one_bound() -> None:
    cuts = [(start, end, 1) for start, end in product((0, 1, 2, -1, -3), (LAST, 3, 1, -1, -2))]
    for first, second in product(cuts, cuts):
        once = count_open_rows("N", first)
        text = count_open_rows(once or "", second)
        assert text is not None
        for size in range(9):
            rows = eval(text, {"__builtins__": {}}, {"Min": min, "Max": max, "N": size})
            left = len(rows_taken(size, first))
            assert rows == len(rows_taken(left, second)), (first, second, text, size)
    assert count_open_rows("Max(0, N - 2)", (3, LAST, 1)) == "Max(0, N - 5)"
    assert count_open_rows("Min(5, N)", (-3, LAST, 1)) == "Min(3, N)"


@pytest.mark.parametrize(
    ("cut", "text"),
    {
        (0, LAST, 1): "N",
        (-1, FIRST, -1): "N",
        (-1, FIRST, -2): "floor((N + 1)/2)",
        (0, -1, 1): "Max(0, N - 1)",
        (-3, LAST, 1): "Min(3, N)",
        (2, 5, 1): "Max(0, Min(5, N) - 2)",
        (1, LAST, 2): "floor((Max(0, N - 1) + 1)/2)",
        (0, LAST, 0): None,
        (-2, FIRST, -1): None,
        (5, LAST, -1): None,
    }.items(),
)
def test_texts(cut: tuple[int, int, int], text: str | None) -> None:
    assert count_open_rows("N", cut) == text


@pytest.mark.parametrize(
    ("start", "end", "rows"),
    [
        (0, "N", "N"),
        ("Mod(-3, N)", "N", "N - Min(Mod(-3, N), N)"),
        (0, "Mod(-3, N)", "Min(Mod(-3, N), N)"),
        ("M", LAST, "N - Min(M, N)"),
        ("Max(0, N - 2)", "N", "Min(2, N)"),
        ("Max(0, N - K)", LAST, "Min(K, N)"),
        ("Max(0, N - K) + 1", LAST, "N - Min(Max(0, N - K) + 1, N)"),
        ("M", "K", "Max(0, Min(K, N) - Min(M, N))"),
        ("Max(0, N - K - 1)", LAST, "Min(K + 1, N)"),
        ("Max(0, N - K + 1)", LAST, "N - Min(Max(0, N - K + 1), N)"),
        ("M - 3", "N", None),
        ("_d0", "N", None),
        (-1, "N", None),
        ("-N", LAST, "N"),
        ("-N", "N", "N"),
        ("-N", "N - 1", None),
        ("-N", 5, None),
        ("-M", LAST, None),
        ("1 - N", LAST, None),
    ],
)
def test_rows_between_sizes(start: int | str, end: int | str, rows: str | None) -> None:
    first, last = (ir.SymbolicDim(x) if isinstance(x, str) else x for x in (start, end))
    found = rows_between(ir.SymbolicDim("N"), first, last)
    assert (None if found is None else str(found)) == rows


@pytest.mark.parametrize(
    ("size", "start", "end", "rows"),
    [
        ("N + 1", 1, LAST, "N"),
        ("M + N + 3", 2, "M + N + 3", "M + N + 1"),
        ("2*N + 2", 2, LAST, "2*N"),
        ("N + 1", 2, LAST, "Max(0, (N + 1) - 2)"),
        ("N - 1", 1, LAST, "Max(0, (N - 1) - 1)"),
        ("N", 1, LAST, "Max(0, N - 1)"),
        ("N + 1", 0, "N", "N"),
        ("N + 1", "N", LAST, "1"),
        ("N + 3", "N", "N + 2", "Max(0, N + 2 - (N))"),
    ],
)
def test_rows_of_a_sum_that_surely_has_those_left_out(
    size: str, start: int | str, end: int | str, rows: str
) -> None:
    first, last = (ir.SymbolicDim(x) if isinstance(x, str) else x for x in (start, end))
    assert str(rows_between(ir.SymbolicDim(size), first, last)) == rows


@pytest.mark.parametrize(
    ("size", "start", "rows"),
    [
        ("Min(N, 64)", "-N", "Min(N, 64)"),
        ("N + 1", "-N - 1", "N + 1"),
        ("Min(N, 64)", "-M", None),
        ("Max(N, 64)", "-N", None),
        ("N + 1", "-N", None),
    ],
)
def test_all_rows_from_behind(size: str, start: str, rows: str | None) -> None:
    found = rows_between(ir.SymbolicDim(size), ir.SymbolicDim(start), LAST)
    assert (None if found is None else str(found)) == rows


@pytest.mark.parametrize("name", ["9**9**9**9", "batch size", "a,b", "1/0", "N)", "x" * 2000])
def test_names_that_are_no_arithmetic_are_not_computed_with(name: str) -> None:
    """They would read as another size, or take forever to read."""
    assert rows_between(symbolic_dim(name), 1, LAST) in (
        None,
        ir.SymbolicDim(f"Max(0, {name} - 1)"),
    )
    assert is_arithmetic(symbolic_dim(name)) == name.isidentifier()


def test_a_size_of_none_is_put_in_before_the_text_is_simplified() -> None:
    for text, size in {"Max(0, N - 1)": 0, "Min(1, N)": 0, "N + M": 2, "Max(0, M - N)": 2}.items():
        assert size_of(ir.SymbolicDim(text), {"N": 0, "M": 2}) == size
    assert size_of(ir.SymbolicDim("Max(0, N - 1)"), {"N": 3}) == 2
    assert isinstance(size_of(ir.SymbolicDim("Mod(1, N)"), {"N": 0}), ir.SymbolicDim)
