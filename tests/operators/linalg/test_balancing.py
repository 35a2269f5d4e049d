"""Eigenvalues and eigenvectors in LAPACK's order and with its signs, since matrices are balanced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal(shape)


def joined(parts: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [re + 1j * im for re, im in zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize("n", [4, pytest.param(9, marks=pytest.mark.slow)])
def test_real_matrices(both, n: int) -> None:
    """LAPACK itself finds another vector of one pair in twenty if the last bits differ."""
    found, expected = map(joined, both("Eig", draw(60, n, n)))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-11)
    is_real = expected[0].imag == 0
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        same = (np.abs(ours - theirs) < 1e-9).all(axis=-2)
        assert same[is_real].all()
        assert same[~is_real].mean() > 0.9


@pytest.mark.parametrize("n", [4, pytest.param(9, marks=pytest.mark.slow)])
def test_complex_matrices(both, n: int) -> None:
    found, expected = map(joined, both("ComplexEig", *draw(2, 30, n, n)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


ISOLATED = {
    "upper": np.triu(draw(5, 5)),
    "lower": np.tril(draw(5, 5)),
    "rows of zeros": draw(5, 5) * np.array([1, 0, 1, 1, 0])[:, None],
    "roots at zero": np.eye(5, k=-1) + np.outer([1, 0, 0, 0, 0], [3.0, -2, 1, 0, 0]),
    "of blocks": np.kron(np.diag([1.0, 0, 2]), [[0.0, -1], [3, 0]]),
    "of Jordan": 2 * np.eye(4) + np.eye(4, k=1),
    "of Jordan, of zeros": np.eye(4, k=1),
    "scaled": np.outer([1, 1e6, 1e-6], [1, 1e-6, 1e6]) * (np.ones((3, 3)) + np.diag([3, 1, 0])),
}


@pytest.mark.parametrize("name", ISOLATED)
def test_rows_that_are_set_off_first_come_as_lapack_sets_them_off(both, name: str) -> None:
    a = ISOLATED[name]
    for operator, given in (("Eig", (a,)), ("ComplexEig", (a, 0 * a))):
        found, expected = map(joined, both(operator, *given))
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize("name", ["upper", "roots at zero", "of blocks"])
def test_forms_of_schur_are_those_of_the_matrix_as_it_was(both, name: str) -> None:
    a = ISOLATED[name]
    (form, vectors), (expected, _) = both("Schur", a)
    np.testing.assert_allclose(vectors @ form @ vectors.T, a, atol=1e-13)
    np.testing.assert_allclose(np.diag(form), np.diag(expected), atol=1e-12)
    form, vectors = joined(both("ComplexSchur", a, 0 * a)[0])
    np.testing.assert_allclose(vectors @ form @ vectors.conj().T, a, atol=1e-13)
