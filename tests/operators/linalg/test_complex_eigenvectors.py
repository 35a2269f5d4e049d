"""``smelt.Eig``, ``smelt.ComplexEig``, ``smelt.ComplexSchur``: their bodies beside LAPACK."""

from __future__ import annotations

import numpy as np
import pytest

SHAPES = [(3, 3), (2, 4, 4), (0, 3, 3), (2, 0, 0), (1, 1), (2, 2), (2, 2, 6, 6)]
MATRICES = {
    "zeros": np.zeros((3, 3)),
    "one": np.eye(4),
    "diagonal": np.diag([3.0, -1.0, 2.0]),
    "triangular": np.triu(np.arange(16.0).reshape(4, 4)),
    "symmetric": np.arange(9.0).reshape(3, 3) + np.arange(9.0).reshape(3, 3).T,
    "rotation": np.array([[0.0, -1.0], [1.0, 0.0]]),
    "permutation": np.roll(np.eye(5), 1, axis=0),
    "block of Jordan": np.eye(4, k=1) + 2 * np.eye(4),
    "companion": np.diag(np.ones(3), -1) + np.outer([-24.0, 50.0, -35.0, 10.0], [0, 0, 0, 1]),
    "large": 1e120 * np.array([[1.0, 2.0], [3.0, 4.0]]),
    "small": 1e-120 * np.array([[1.0, 2.0], [3.0, 4.0]]),
    "graded": np.outer(10.0 ** -np.arange(5), 10.0 ** np.arange(5)) + np.eye(5),
}


def draw(shape: tuple[int, ...], dtype: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)


def adjoint(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


def paired(results: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    return [x + 1j * y for x, y in zip(results[::2], results[1::2], strict=True)]


def assert_same_set(found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Each value belongs to one of the others."""
    for place in np.ndindex(found.shape[:-1]):
        ours, theirs = found[place], expected[place]
        left = list(theirs)
        for value in ours:
            nearest = min(left, key=lambda other: abs(other - value))
            assert abs(nearest - value) <= tolerance
            left.remove(nearest)


def assert_eigen(a: np.ndarray, results: list[np.ndarray], tolerance: float) -> None:
    values, left, right = results
    length = np.abs(a).max(initial=0.0)
    of_right = a @ right - right * values[..., None, :]
    of_left = adjoint(left) @ a - values[..., :, None] * adjoint(left)
    assert np.abs(of_right).max(initial=0) <= tolerance * length
    assert np.abs(of_left).max(initial=0) <= tolerance * length
    for vectors in (left, right):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=max(tolerance, 1e-12))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_any_shape(both, shape):
    re, im = draw(shape)
    got, expected = map(paired, both("ComplexEig", re, im))
    assert_same_set(got[0], expected[0], 1e-12)
    assert_eigen(re + 1j * im, got, 1e-12)
    got, expected = map(paired, both("Eig", re))
    assert_same_set(got[0], expected[0], 1e-12)
    assert_eigen(re, got, 1e-12)
    form, vectors = paired(both("ComplexSchur", re, im)[0])
    assert not np.tril(form, -1).any()
    np.testing.assert_allclose(vectors @ form @ adjoint(vectors), re + 1j * im, atol=1e-12)
    np.testing.assert_allclose(
        adjoint(vectors) @ vectors, np.broadcast_to(np.eye(shape[-1]), shape), atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", MATRICES)
def test_of_matrices_that_are_not_general(both, name):
    a = MATRICES[name]
    got, expected = map(paired, both("Eig", a))
    # Equal values without vectors of their own are known to a root of the precision.
    assert_same_set(got[0], expected[0], np.abs(a).max() * (1e-3 if "Jordan" in name else 1e-11))
    assert_eigen(a, got, 1e-3 if "Jordan" in name else 1e-11)


def test_values_and_vectors_of_real_matrices(both):
    """A general matrix, one whose values have no vectors of their own, and a permutation."""
    a = np.stack([draw((5, 5))[0], np.eye(5, k=1), np.roll(np.eye(5), 1, axis=0)])
    got, expected = both("Eig", a)
    assert_eigen(a, paired(got), 1e-11)
    for i in (0, 2):
        assert_same_set(paired(got)[0][i], paired(expected)[0][i], 1e-12)
        assert ((got[1][i] == 0) == (expected[1][i] == 0)).sum() in (1, 3, 5)
        assert not got[5][i][:, got[1][i] == 0].any()


@pytest.mark.slow
def test_in_single_precision(both):
    re, im = draw((2, 5, 5), np.float32)
    assert_eigen(re + 1j * im, paired(both("ComplexEig", re, im)[0]), 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_gives_nan_and_leaves_others_alone(both, bad):
    a = draw((2, 3, 3))[0]
    a[0, 1, 2] = bad
    got, expected = both("Eig", a)
    for ours, theirs in zip(got[::2], expected[::2], strict=True):
        assert np.isnan(ours[0]).all()
        assert np.isnan(theirs[0]).all()
    assert_eigen(a[1], paired(tuple(part[1] for part in got)), 1e-12)


@pytest.mark.slow
def test_of_many_rows(both):
    a = draw((40, 40))[0]
    got, expected = map(paired, both("Eig", a))
    assert_same_set(got[0], expected[0], 1e-10)
    assert_eigen(a, got, 1e-11)
