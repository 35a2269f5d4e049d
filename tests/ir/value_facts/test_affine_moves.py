"""Affine forms of elements after a Reshape and a Concat, with sizes that no run has told."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir.value_facts.affine import Affine
from smelt.ir.value_facts.affine_moves import concatenated, is_one, reshaped

N, M = ir.SymbolicDim("N"), ir.SymbolicDim("M")
ONE = ir.SymbolicDim("Min(1, N)")


def form(start: int, *steps: int) -> Affine:
    return Affine(start, steps)


CONCATENATED = [
    # operands, their sizes, the axis, the form of the result
    ([form(0, 1), form(3, 1)], [3, 2], 0, form(0, 1)),
    ([form(0, 1), form(4, 1)], [3, 2], 0, None),
    ([form(0, 1), form(2, 1)], [3, 2], 0, None),
    ([form(0, 2), form(6, 2), form(10, 2)], [3, 2, 1], 0, form(0, 2)),
    ([form(0, 2), form(6, 1)], [3, 2], 0, None),
    ([form(0, 2), form(6, 1)], [3, 1], 0, form(0, 2)),
    ([form(5, 0), form(7, 0)], [1, 1], 0, form(5, 2)),
    ([form(5, 0)], [1], 0, form(5, 0)),
    ([form(5, 0), form(7, 0), form(8, 0)], [1, 1, 1], 0, None),
    ([form(0, 1), form(3, 1)], [3, N], 0, form(0, 1)),
    ([form(0, 1), form(3, 1)], [N, 3], 0, None),
    ([form(5, 0), form(5, 0)], [N, M], 0, form(5, 0)),
    ([form(5, 0), form(5, 0), form(5, 0)], [N, 2, M], 0, form(5, 0)),
    ([form(5, 0), form(6, 0)], [N, M], 0, None),
    ([form(0, 3, 1), form(6, 3, 1)], [2, 2], 0, form(0, 3, 1)),
    ([form(0, 3, 1), form(2, 3, 1)], [2, 1], 1, form(0, 3, 1)),
    ([form(0, 3, 1), form(6, 2, 1)], [2, 2], 0, None),
    ([form(0, 9), form(1, 1)], [ONE, N], 0, form(0, 1)),
]


@pytest.mark.parametrize(("forms", "sizes", "axis", "expected"), CONCATENATED)
def test_operands_that_continue_a_sequence(forms, sizes, axis, expected) -> None:
    assert concatenated(forms, sizes, axis) == expected


RESHAPED = [
    # form, sizes before and after, the form of the result
    (form(5, 0, 0), (2, 3), (6,), form(5, 0)),
    (form(5, 0), (N,), (2, M, 1), form(5, 0, 0, 0)),
    (form(1, 7, 2), (1, 3), (3,), form(1, 2)),
    (form(1, 2), (3,), (1, 3, 1), form(1, 0, 2, 0)),
    (form(1, 6, 2), (2, 3), (2, 1, 3), form(1, 6, 0, 2)),
    (form(1, 6, 2), (2, 3), (3, 2), None),
    (form(1, 6, 2), (2, 3), (6,), None),
    (form(1, 2), (N,), (1, N), form(1, 0, 2)),
    (form(1, 2), (N,), (1, M), None),
    (form(1, 6, 2), (2, 3), (2,), None),
    (form(1, 6, 2), (2, 3), (2, 3, 4), None),
]


@pytest.mark.parametrize(("before", "sizes", "after", "expected"), RESHAPED)
def test_a_reshape_adds_or_drops_dims_of_one(before, sizes, after, expected) -> None:
    assert reshaped(before, sizes, after) == expected


@pytest.mark.parametrize(
    ("dim", "is_so"),
    [
        (1, True),
        (2, False),
        (N, False),
        (ir.SymbolicDim(None), False),
        (ir.SymbolicDim("3 - 2"), True),
        (ir.SymbolicDim("2*N"), False),
        (ir.SymbolicDim("N - N + 1"), True),
    ],
)
def test_sizes_that_are_one(dim, is_so) -> None:
    assert is_one(dim) is is_so
