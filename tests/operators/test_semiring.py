"""Algebras: by name, spelled, or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smelt.errors import UsageError
from smelt.operators.semiring import SEMIRINGS, Semiring, semiring_of


@pytest.mark.parametrize("name", SEMIRINGS)
def test_a_known_one_is_written_by_its_name(name: str) -> None:
    assert str(semiring_of(name)) == name


def test_any_other_one_is_written_by_its_parts() -> None:
    own = Semiring("Min", "Mul", math.inf, 1.0)
    assert str(own) == "Min,Mul,inf,1.0"
    assert semiring_of(str(own)) == own


WRONG = {
    "no_such": "is not a semiring",
    "Max,Add,low,0": "is not a semiring",
    "Sub,Mul,0,1": "cannot be the plus",
    "Max,Div,0,1": "cannot be the times",
    "Add,Mul,1,1": "1.0 is not the zero",
    "Max,Add,-inf,1": "1.0 is not the one",
    "Max,And,0,1": "do not form a semiring",
}


@pytest.mark.parametrize(("text", "why"), WRONG.items(), ids=WRONG)
def test_invalid_semirings_are_refused(text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        semiring_of(text)
    assert caught.value.code == "E657"


@pytest.mark.parametrize("zero", ["low", 0j, None])
def test_zero_and_one_are_numbers(zero: float) -> None:
    with pytest.raises(UsageError, match="cannot be the zero or one") as caught:
        Semiring("Max", "Add", zero, 0)
    assert caught.value.code == "E657"


@pytest.mark.parametrize(
    ("name", "zero"), [("sum_product", 0), ("max_plus", -128), ("min_plus", 127)]
)
def test_integers_have_a_zero_too(name: str, zero: int) -> None:
    empty = np.zeros((2, 0), np.int8)
    total = SEMIRINGS[name].sum(empty, (1,))
    assert (total.dtype, total.tolist()) == (np.int8, [zero, zero])


def test_logarithms_are_added_without_overflow() -> None:
    terms = np.array([[1000.0, 1000], [-np.inf, -np.inf], [np.inf, 0], [np.nan, 0]], np.float32)
    total = SEMIRINGS["log_sum_exp"].sum(terms, (1,))
    np.testing.assert_allclose(total, [1000 + math.log(2), -np.inf, np.inf, np.nan], rtol=1e-6)
