"""QR of small complex matrices by their parts: the factors, and signs, of LAPACK."""

from __future__ import annotations

import numpy as np
import pytest
from one_operator import agreement, source

from smelt.native.rewrite.call_lapack import call_lapack
from smelt.native.schedule import planned
from smelt.runtime.jit import blas

pytestmark = pytest.mark.skipif(blas.table() is None, reason="scipy-openblas32 is not installed")


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def agrees(compile_host):
    return agreement(compile_host, call_lapack, "smelt.native.small")


def matrices(*shape: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, *shape)).astype(dtype)


@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("shape", [(5, 5), (3, 6, 4), (2, 4, 6), (1, 1), (1, 3), (3, 1), (32, 17)])
def test_of_every_shape(agrees, shape: tuple[int, ...], full: int) -> None:
    agrees("ComplexQR", *matrices(*shape), full_matrices=full)


def test_in_single_precision(agrees) -> None:
    agrees("ComplexQR", *matrices(7, 6, 5, dtype="float32"), full_matrices=0)


def test_triangular_matrices_stay(agrees) -> None:
    """A column that is done is not turned, nor is its sign; one that is not real is."""
    re, im = matrices(4, 4)
    _, _, triangle, _ = agrees("ComplexQR", np.triu(re), np.triu(im, 1), full_matrices=0)
    np.testing.assert_array_equal(triangle, np.triu(re))
    agrees("ComplexQR", np.triu(re), np.triu(im), full_matrices=0)
    agrees("ComplexQR", re, 0 * im, full_matrices=0)


def test_columns_of_zeros(agrees) -> None:
    re, im = matrices(5, 4)
    re[:, 1] = im[:, 1] = 0
    agrees("ComplexQR", re, im, full_matrices=1)
    agrees("ComplexQR", 0 * re, 0 * im, full_matrices=1)


@pytest.mark.parametrize("size", [1e250, 1e-250])
def test_squares_out_of_range(compile_host, size: float) -> None:
    re, im = size * matrices(6, 4)
    parts = compile_host(source("ComplexQR", 4, re, im, full_matrices=0))(re, im)
    q, r = parts[0] + 1j * parts[1], (parts[2] + 1j * parts[3]) / size
    np.testing.assert_allclose(q @ r, (re + 1j * im) / size, atol=1e-13)
    np.testing.assert_allclose(q.conj().T @ q, np.eye(4), atol=1e-13)


def test_a_matrix_that_is_not_finite_spoils_no_other(compile_host) -> None:
    re, im = matrices(3, 4, 4)
    re[1, 2, 0] = np.nan
    results = compile_host(source("ComplexQR", 4, re, im, full_matrices=0))(re, im)
    assert all(np.isfinite(part[::2]).all() for part in results)
    assert all(np.isnan(part[1]).any() for part in results)


@pytest.mark.parametrize("shape", [(33, 4), (4, 33)])
def test_larger_ones_are_left_to_lapack(compile_host, shape: tuple[int, int]) -> None:
    re, im = matrices(*shape)
    artifact = compile_host(source("ComplexQR", 4, re, im, full_matrices=0))
    artifact(re, im)
    ordered = planned(artifact.opened().compiled.program.copy(), "host", (call_lapack,))
    assert [step.op for step in ordered.instructions] == ["smelt.native::ComplexQR"]
