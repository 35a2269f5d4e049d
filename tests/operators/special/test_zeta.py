"""``smelt.Zeta`` and ``smelt.Polygamma`` against sums, known values and SciPy."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from smelt.operators import find


def of(name: str, *x: np.ndarray | float) -> np.ndarray:
    operator = find("smelt", name)
    assert operator is not None
    return operator.reference(tuple(np.asarray(v, np.float64) for v in x), {})[0]


def test_known_values() -> None:
    expected = [math.pi**2 / 6, 1.2020569031595943, math.pi**4 / 90]
    np.testing.assert_allclose(of("Zeta", [2, 3, 4], 1.0), expected, rtol=1e-15)


def test_agrees_above_zero() -> None:
    s, q = np.meshgrid(np.linspace(1.01, 60, 97), np.geomspace(1e-3, 1e5, 83))
    expected = special.zeta(s, q)
    np.testing.assert_allclose(of("Zeta", s, q), expected, rtol=1e-13, atol=1e-290)


def test_terms_below_zero_are_summed_however_many() -> None:
    q = -12.25
    for s in (2, 3, 4, 5):
        terms = math.fsum((q + k) ** -s for k in range(13)) + of("Zeta", s, 0.75)
        np.testing.assert_allclose(of("Zeta", s, q), terms, rtol=1e-13)
    far = of("Zeta", 2.0, -1e9 - 0.5)
    np.testing.assert_allclose(far, math.pi**2, rtol=1e-8)


def test_polygamma() -> None:
    n, x = np.meshgrid(np.arange(1, 21), np.linspace(0.05, 30, 61))
    np.testing.assert_allclose(of("Polygamma", n, x), special.polygamma(n, x), rtol=1e-13)
    half = of("Polygamma", 1, np.array([0.5, -0.5]))
    np.testing.assert_allclose(half, [math.pi**2 / 2, math.pi**2 / 2 + 4], rtol=1e-14)


def test_orders_that_are_no_orders() -> None:
    assert np.isnan(of("Polygamma", [-1, 0.5, np.nan, np.inf], 1.0)).all()
