"""``smelt.Betainc`` against SciPy and its symmetry, over all sizes."""

from __future__ import annotations

import numpy as np
from scipy import special

from smelt.operators import find


def betainc(*x: np.ndarray | float) -> np.ndarray:
    operator = find("smelt", "Betainc")
    assert operator is not None
    return operator.reference(tuple(np.asarray(v, np.float64) for v in x), {})[0]


def test_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    a, b = 10 ** rng.uniform(-2, 6, (2, 500))
    x = rng.beta(np.maximum(a, 0.2), np.maximum(b, 0.2))
    np.testing.assert_allclose(betainc(a, b, x), special.betainc(a, b, x), rtol=1e-9, atol=1e-14)


def test_symmetry() -> None:
    x = np.linspace(0, 1, 65)
    np.testing.assert_allclose(betainc(2.5, 0.7, x) + betainc(0.7, 2.5, 1 - x), 1, rtol=1e-14)


def test_edges() -> None:
    np.testing.assert_array_equal(
        betainc([2, 0, 2, np.inf], [2, 2, 0, 2], [0, 0.5, 0.5, 0.5]), [0, 1, 0, 0]
    )
    wrong = betainc([-1, 0, 2, 2, np.nan], [1, 0, 2, 2, 1], [0.5, 0.5, -0.1, 1.1, 0.5])
    assert np.isnan(wrong).all()


def test_arguments_without_convergence_return_nan() -> None:
    assert np.isnan(betainc(1e25, 1e25, 0.5))
