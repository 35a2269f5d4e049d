"""The incomplete gamma functions against SciPy and closed forms, over all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from smelt.operators import find


def of(name: str, *x: np.ndarray | float) -> np.ndarray:
    operator = find("smelt", name)
    assert operator is not None
    return operator.reference(tuple(np.asarray(v, np.float64) for v in x), {})[0]


def pairs(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(low, high, 400)
    return a, a * np.exp(rng.normal(size=400) * np.minimum(1.5, 3 / np.sqrt(a)))


def test_agrees_with_scipy() -> None:
    a, x = pairs(-2, 4)
    np.testing.assert_allclose(of("Igamma", a, x), special.gammainc(a, x), rtol=1e-12)
    np.testing.assert_allclose(of("Igammac", a, x), special.gammaincc(a, x), rtol=3e-13, atol=1e-15)


def test_large_numbers_are_normal() -> None:
    """The cube root of a gamma variable is normal, after Wilson and Hilferty."""
    a = np.array([1e12, 1e18, 1e30])
    z = np.array([-2.0, 0.0, 2.0])[:, None]
    x = a + z * np.sqrt(a)
    expected = np.broadcast_to(special.ndtr(z), x.shape)[:, :1]
    np.testing.assert_allclose(of("Igamma", a, x)[:, :1], expected, rtol=1e-5)
    assert np.isfinite(of("Igamma", a, x)).all()
    np.testing.assert_array_equal(of("Igamma", 1e30, [1.0, 0.9e30, 1.1e30, 1e300]), [0, 0, 1, 1])


def test_both_functions_sum_to_one() -> None:
    a, x = pairs(-3, 8)
    np.testing.assert_allclose(of("Igamma", a, x) + of("Igammac", a, x), 1, rtol=1e-12)


@pytest.mark.parametrize("size", [(-1, 2), (2, 3.29), (3.31, 6)])
def test_the_derivative_is_that_of_the_function(size: tuple[float, float]) -> None:
    a, x = pairs(*size)
    step = a * 1e-5
    difference = (of("Igamma", a + step, x) - of("Igamma", a - step, x)) / (2 * step)
    scale = np.abs(difference).max()
    np.testing.assert_allclose(of("IgammaGradA", a, x), difference, rtol=1e-5, atol=1e-6 * scale)
