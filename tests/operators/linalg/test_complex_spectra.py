"""``smelt.ComplexEigh`` and ``smelt.ComplexSVD``: their bodies beside LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [(3, 3), (2, 4, 2), (2, 4), (0, 3, 3), (2, 0, 0), (1, 1), (2, 3, 5, 5)]


def draw(shape: tuple[int, ...], dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


def assert_unitary(a: np.ndarray, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(
        adjoint(a) @ a, np.eye(a.shape[-1]) + 0 * (adjoint(a) @ a), atol=tolerance
    )


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[-1] == shape[-2]], ids=str)
def test_eigenvectors_belong_to_the_values(both, shape: tuple[int, ...], lower: int) -> None:
    """The other triangle, and the imaginary part of the diagonal, are not read."""
    re, im = draw(shape)
    a = re + 1j * im
    strict = np.tril(a, -1) if lower else np.triu(a, 1)
    whole = strict + adjoint(strict) + re * np.eye(shape[-1])
    (*_, values), (*_, expected) = results = both("ComplexEigh", re, im, lower=lower)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)
    for x, y, found in results:
        vectors = x + 1j * y
        np.testing.assert_allclose(whole @ vectors, vectors * found[..., None, :], atol=1e-11)
        assert_unitary(vectors)


@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_vectors_make_the_matrix(both, shape: tuple[int, ...], full: int) -> None:
    re, im = draw(shape)
    results = both("ComplexSVD", re, im, full_matrices=full)
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12, atol=1e-12)
    for sizes, *parts in results:
        left, right = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
        count = sizes.shape[-1]
        made = (left[..., :count] * sizes[..., None, :]) @ right[..., :count, :]
        np.testing.assert_allclose(made, re + 1j * im, atol=1e-11)
        assert_unitary(left)
        assert_unitary(adjoint(right))
    for (values,) in both("ComplexSingularValues", re, im):
        np.testing.assert_allclose(values, results[1][0], rtol=1e-12, atol=1e-12)


def test_only_non_finite_matrices_become_nan(both) -> None:
    re, im = draw((3, 2, 2))
    im[1, 1, 0] = np.nan
    for name in ("ComplexEigh", "ComplexSVD"):
        for results in both(name, re, im):
            for result in results:
                assert np.isnan(result[1]).all()
                assert np.isfinite(result[[0, 2]]).all()
