"""Trigonometric and hyperbolic operators of the ``smelt`` domain against those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.operators import find

NAMES = {
    "Tan": np.tan,
    "Atan": np.arctan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
}
SIZES = np.concatenate([np.linspace(0, 1, 501), np.geomspace(1e-300, 1e300, 301), [39, 41, 709.9]])
EDGES = np.array([0.0, 1.0, np.inf, np.nan, 710.4, 711.0])


def of(name: str, x: np.ndarray) -> np.ndarray:
    operator = find("smelt", name)
    assert operator is not None
    return operator.reference((x,), {})[0]


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_numpy(name: str) -> None:
    size = np.concatenate([SIZES, EDGES])
    x = np.concatenate([size, -size])
    with np.errstate(all="ignore"):
        expected = NAMES[name](x)
    np.testing.assert_allclose(of(name, x), expected, rtol=3e-15)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("Acos", "Cosh", "Acosh")])
def test_odd_functions_keep_the_sign_of_zero(name: str) -> None:
    np.testing.assert_array_equal(np.signbit(of(name, np.array([0.0, -0.0]))), [False, True])
