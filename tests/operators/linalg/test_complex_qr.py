"""``smelt.ComplexQR``: its body beside LAPACK's ``geqrf`` and ``ungqr``."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [(2, 5, 3), (3, 5), (0, 3, 3), (2, 0, 3)]


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape)


@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_any_shape(both, shape: tuple[int, ...], full: int) -> None:
    found, expected = both("ComplexQR", *draw(2, *shape), full_matrices=full)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_a_column_that_is_done_stays_and_large_numbers_do_not_overflow(both) -> None:
    a = np.array([[[2.0, 1, 0], [0, 0, 0], [0, 0, 3]], 1e200 * draw(3, 3)])
    found, expected = both("ComplexQR", a, np.stack([np.zeros((3, 3)), 1e200 * draw(3, 3).T]))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13, rtol=1e-12)
