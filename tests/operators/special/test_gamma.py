"""``smelt.Lgamma`` and ``smelt.Digamma`` against known values in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smelt.operators.special.digamma import OPERATOR as DIGAMMA
from smelt.operators.special.gamma import OPERATOR as LGAMMA


def of(operator, *x: float) -> np.ndarray:
    return operator.reference((np.array(x),), {})[0]


def test_lgamma_agrees_with_the_c_library() -> None:
    x = np.concatenate([np.geomspace(1e-300, 1e300, 997), np.linspace(0.01, 30, 2000)])
    np.testing.assert_allclose(of(LGAMMA, *x), [math.lgamma(v) for v in x], rtol=2e-15, atol=3e-15)


def test_lgamma_below_zero() -> None:
    x = -np.linspace(0.013, 40.3, 977)
    expected = [math.lgamma(v) for v in x]
    np.testing.assert_allclose(of(LGAMMA, *x), expected, rtol=1e-14, atol=1e-14)


def test_lgamma_keeps_its_digits_near_the_roots() -> None:
    z = np.array([1e-12, -1e-12, 1e-5, -1e-5])
    np.testing.assert_allclose(of(LGAMMA, *(1 + z)), -0.5772156649015329 * ((1 + z) - 1), rtol=2e-5)
    np.testing.assert_allclose(of(LGAMMA, *(2 + z)), 0.42278433509846713 * ((2 + z) - 2), rtol=2e-5)
    np.testing.assert_array_equal(of(LGAMMA, 1, 2), 0)


def test_lgamma_at_poles_and_infinities() -> None:
    np.testing.assert_array_equal(of(LGAMMA, 0, -0.0, -1, -2, -1e20, np.inf, -np.inf), np.inf)
    assert np.isnan(of(LGAMMA, np.nan))[0]


KNOWN = {  # DLMF 5.4.12 and following, and the recurrence.
    1.0: -0.57721566490153286,
    0.5: -1.9635100260214235,
    2.0: 0.42278433509846714,
    -0.5: 0.03648997397857652,
    0.25: -4.2274535333762654,
    10.0: 2.2517525890667211,
    1e10: 23.025850929890455,
    1e-10: -10000000000.577216,
    -1e-10: 9999999999.422784,
}


@pytest.mark.parametrize("x", KNOWN)
def test_digamma(x: float) -> None:
    np.testing.assert_allclose(of(DIGAMMA, x), KNOWN[x], rtol=2e-15, atol=3e-16)


def test_digamma_satisfies_its_recurrence() -> None:
    x = np.linspace(-12.3, 30, 1001)
    np.testing.assert_allclose(
        of(DIGAMMA, *(x + 1)), of(DIGAMMA, *x) + 1 / x, rtol=1e-12, atol=1e-13
    )


def test_digamma_keeps_its_digits_near_the_root() -> None:
    z = np.array([1e-12, -1e-9])
    exact = 0.9676722454476212 * ((1.4616321449683622 + z) - 1.4616321449683622 - 9.55e-17)
    np.testing.assert_allclose(of(DIGAMMA, *(1.4616321449683622 + z)), exact, rtol=1e-8)


def test_digamma_at_poles_and_infinities() -> None:
    np.testing.assert_array_equal(of(DIGAMMA, 0, -1, -2, -np.inf, np.nan), np.nan)
    np.testing.assert_array_equal(of(DIGAMMA, np.inf), np.inf)
