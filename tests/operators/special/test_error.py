"""``smelt.Erf``, ``smelt.Erfc`` and ``smelt.ErfInv`` against the C library, and each other."""

from __future__ import annotations

import math

import numpy as np

from smelt.operators import find


def of(name: str, x: np.ndarray | float) -> np.ndarray:
    operator = find("smelt", name)
    assert operator is not None
    return operator.reference((np.asarray(x),), {})[0]


def test_erf_and_erfc() -> None:
    x = np.concatenate([np.linspace(-7, 26, 3301), np.geomspace(1e-300, 1, 99)])
    np.testing.assert_allclose(of("Erf", x), [math.erf(v) for v in x], rtol=1e-15)
    np.testing.assert_allclose(of("Erfc", x), [math.erfc(v) for v in x], rtol=2e-15)


def test_the_inverse_undoes_erf() -> None:
    y = np.linspace(-3, 3, 601)
    np.testing.assert_allclose(of("ErfInv", of("Erf", y)), y, rtol=1e-11, atol=1e-300)


def test_the_inverse_undoes_erfc_in_the_tail() -> None:
    small = np.arange(1, 40) * 2.0**-53
    y = of("ErfInv", 1 - small)
    np.testing.assert_allclose(of("Erfc", y), small, rtol=1e-13)


def test_ends_and_beyond() -> None:
    np.testing.assert_array_equal(of("ErfInv", np.array([1.0, -1.0])), [np.inf, -np.inf])
    assert np.isnan(of("ErfInv", np.array([1.0000001, -2, np.inf, np.nan]))).all()
    np.testing.assert_array_equal(of("Erfc", np.array([np.inf, -np.inf])), [0, 2])
    zeros = of("ErfInv", np.array([0.0, -0.0]))
    np.testing.assert_array_equal(np.signbit(zeros), [False, True])
