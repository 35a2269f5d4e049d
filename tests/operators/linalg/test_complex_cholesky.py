"""``smelt.ComplexCholesky``: its body beside the reference."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(1, 1), (2, 0, 0), (0, 2, 2), (3, 5, 5)], ids=str)
def test_the_factor_times_its_adjoint_is_the_matrix(both, shape: tuple[int, ...]) -> None:
    """The upper triangle and the imaginary part of the diagonal are not read."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    a = root @ root.conj().swapaxes(-1, -2) + np.eye(shape[-1])
    below = np.tri(shape[-1], dtype=bool)
    re, im = np.where(below, a.real, np.nan), np.where(below, a.imag + np.eye(shape[-1]), np.nan)
    for x, y in both("ComplexCholesky", re, im):
        factor = x + 1j * y
        np.testing.assert_allclose(factor @ factor.conj().swapaxes(-1, -2), a, atol=1e-12)
        assert not factor[..., ~below].any()


def test_only_matrices_not_positive_definite_become_nan(both) -> None:
    re = np.stack([np.eye(2), np.diag([1.0, 0]), np.diag([-1.0, 1])])
    for parts in both("ComplexCholesky", re, np.zeros_like(re)):
        for part in parts:
            assert np.isnan(part).sum((-1, -2)).tolist() == [0, 3, 3]
