"""Dims of inputs are solved for their symbols, where they are linear in one unknown."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir.symbolic_dims.solved_dims import misfit_of, solve, solvers

SOLVED = [
    ("S", "6", {"S": 6}),
    ("2*S", "6", {"S": 3}),
    ("S + 1", "6", {"S": 5}),
    ("S - 2", "6", {"S": 8}),
    ("3*S + 2", "8", {"S": 2}),
    ("10 - S", "4", {"S": 6}),
    ("2*S T", "6 5", {"S": 3, "T": 5}),
    ("S + T T", "6 5", {"S": 1, "T": 5}),
    ("S + T S*T T", "6 5 5", {"S": 1, "T": 5}),
    ("2*S + T S + 3", "9 5", {"S": 2, "T": 5}),
    ("S S + 1", "4 9", {"S": 4}),  # ``misfit_of`` refuses it
    ("a,b 2*S", "3 4", {"a,b": 3, "S": 2}),
    ("floor(S/2)", "3", {}),
    ("S*T", "6", {}),
    ("S*S", "9", {}),
    ("S + T", "9", {}),
    ("Max(S, 3)", "9", {}),
]


@pytest.mark.parametrize(("texts", "sizes", "expected"), SOLVED)
def test_dims_linear_in_one_unknown_are_solved(texts, sizes, expected):
    dims = _dims(texts)
    assert solve(dims, list(map(int, sizes.split()))) == expected
    assert solvers(dims).keys() == expected.keys()


@pytest.mark.parametrize(
    ("texts", "sizes", "why"),
    [
        ("2*S", "6", ""),
        ("2*S", "5", "2*S is 4 where S=2, not 5"),
        ("S S + 1", "4 5", ""),
        ("S S + 1", "4 9", "S + 1 is 5 where S=4, not 9"),
        ("S + 3", "2", "S + 3 is 2 only where S=-1, and no size is below 0"),
        ("S + 3", "3", ""),
        ("floor(S/2)", "3", ""),
    ],
)
def test_sizes_that_no_symbol_explains_do_not_fit(texts, sizes, why):
    dims, numbers = _dims(texts), list(map(int, sizes.split()))
    assert misfit_of(dims, numbers, solve(dims, numbers)) == why


def _dims(texts: str) -> list[ir.SymbolicDim]:
    """Return dims for ``texts``, between which there are single spaces without an operator."""
    words, dims = texts.split(), list[str]()
    for word in words:
        joins = dims and (dims[-1][-1] in "+-," or word in "+-")
        dims[-1:] = [f"{dims[-1]} {word}"] if joins else [*dims[-1:], word]
    return [ir.SymbolicDim(text) for text in dims]
