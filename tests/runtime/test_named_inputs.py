"""Inputs of ``smelt.run`` by name: no value that the user gives counts as missing."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text

MODEL = "g (float x, float[2] z) => (float y) { y = Identity(x) }"


@pytest.mark.parametrize("number", [np.float32(3), np.array(3, np.float32)])
def test_numbers_of_numpy_are_arrays_of_rank_0(number: np.float32 | np.ndarray) -> None:
    assert smelt.run(text.parse(MODEL), {"x": number})["y"] == 3


@pytest.mark.parametrize("given", [3.0, [3.0], "a", [[1], [1, 2]]], ids=str)
def test_given_values_that_do_not_fit_are_refused(given: object) -> None:
    with pytest.raises(UsageError) as caught:
        smelt.run(text.parse(MODEL), {"x": given})
    assert caught.value.code == "E632"


def test_arrays_without_names_are_refused() -> None:
    with pytest.raises(UsageError, match="the inputs are not a dict of arrays"):
        smelt.run(text.parse(MODEL), [np.float32(3)])
