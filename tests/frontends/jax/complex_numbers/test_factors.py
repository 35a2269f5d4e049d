"""Factors, spectra and solutions of complex matrices equal those of JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy import linalg

import smelt
from smelt.errors import ErrorList, Unsupported

RNG = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)


def adjoint(a):
    return jnp.swapaxes(a.conj(), -1, -2)


def positive(a):
    return a @ adjoint(a) + jnp.eye(a.shape[-1])


def eigh_checked(a):
    """Values, what the factors multiply to, and that the vectors are orthonormal."""
    values, vectors = jnp.linalg.eigh(a)
    return values, (vectors * values[..., None, :]) @ adjoint(vectors), adjoint(vectors) @ vectors


def svd_checked(a, full_matrices=True):
    left, sizes, right = jnp.linalg.svd(a, full_matrices=full_matrices)
    count = sizes.shape[-1]
    whole = (left[..., :count] * sizes[..., None, :]) @ right[..., :count, :]
    return sizes, whole, adjoint(left) @ left, right @ adjoint(right)


Q = np.linalg.qr(draw(5, 5))[0]
TWICE = (Q @ np.diag([1, 1, 2, 2, 2]) @ Q.conj().T).astype(np.complex64)
LOW_RANK = draw(5, 2) @ draw(2, 4)

CASES: dict[str, tuple[Callable, tuple[np.ndarray, ...]]] = {
    "lu": (linalg.lu, (draw(4, 4),)),
    "lu wide, a batch": (jax.scipy.linalg.lu_factor, (draw(2, 4, 4),)),
    "lu of more rows": (linalg.lu, (draw(5, 3),)),
    "det": (jnp.linalg.det, (draw(3, 4, 4),)),
    "slogdet of 1x1": (jnp.linalg.slogdet, (draw(1, 1),)),
    "cholesky": (lambda a: jnp.linalg.cholesky(positive(a)), (draw(2, 4, 4),)),
    "cholesky of what has none": (lambda a: jnp.linalg.cholesky(a - adjoint(a)), (draw(3, 3),)),
    "cho_solve": (
        lambda a, b: linalg.cho_solve(linalg.cho_factor(positive(a)), b),
        (draw(4, 4), draw(4, 2)),
    ),
    "qr": (jnp.linalg.qr, (draw(2, 5, 3),)),
    "qr of more columns": (jnp.linalg.qr, (draw(3, 5),)),
    "qr complete": (lambda a: jnp.linalg.qr(a, mode="complete"), (draw(5, 3),)),
    "qr of zeros": (jnp.linalg.qr, (np.zeros((3, 3), np.complex64),)),
    "qr of nothing": (jnp.linalg.qr, (draw(0, 0),)),
    "triangular, transposed": (
        lambda a, b: linalg.solve_triangular(a, b, lower=True, trans="T"),
        (draw(4, 4), draw(4)),
    ),
    "triangular, adjoint, ones on the diagonal": (
        lambda a, b: linalg.solve_triangular(a, b, trans="C", unit_diagonal=True),
        (draw(4, 4), draw(4, 3)),
    ),
    "triangular from the right": (
        lambda a, b: lax.linalg.triangular_solve(
            a, b, lower=True, transpose_a=True, conjugate_a=True
        ),
        (draw(4, 4), draw(3, 4)),
    ),
    "eigh": (lambda a: eigh_checked(a + adjoint(a)), (draw(2, 4, 4),)),
    "eigh of equal values": (eigh_checked, (TWICE,)),
    "eigh of the identity": (eigh_checked, (np.eye(4, dtype=np.complex64),)),
    "svd": (lambda a: svd_checked(a, full_matrices=False), (draw(2, 4, 3),)),
    "svd of more columns": (svd_checked, (draw(2, 4),)),
    "svd of low rank": (svd_checked, (LOW_RANK,)),
    "svd of zeros": (svd_checked, (np.zeros((3, 2), np.complex64),)),
    "rank": (jnp.linalg.matrix_rank, (LOW_RANK,)),
    "pinv of low rank": (jnp.linalg.pinv, (LOW_RANK,)),
    "custom_linear_solve": (
        lambda a, b: lax.custom_linear_solve(lambda x: a @ x, b, lambda _, b: b / jnp.diagonal(a)),
        (np.diag(draw(3)), draw(3)),
    ),
}
QUICK = ("lu", "cholesky", "qr", "triangular, adjoint, ones on the diagonal", "svd of low rank")


def compare(name: str, target: str) -> None:
    function, arrays = CASES[name]
    expected = jax.tree.leaves(function(*arrays))
    structs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    artifact = smelt.compile(smelt.trace(function, *structs), target=target)
    for got, want in zip(artifact(*arrays), expected, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_decompositions_equal_those_of_jax(name: str) -> None:
    compare(name, "onnx")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("name", CASES)
def test_other_targets(name: str, target: str) -> None:
    compare(name, target)


def test_open_sizes() -> None:
    model = smelt.trace(lambda a: jnp.linalg.cholesky(positive(a)), "c64[N,N]")
    run = smelt.compile(model, target="onnx")
    for size in (1, 3):
        a = draw(size, size)
        np.testing.assert_allclose(run(a)[0], np.linalg.cholesky(positive(a)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: lax.linalg.qr(a, pivoting=True),
        lambda a: lax.linalg.eigh(a, subset_by_index=(0, 1)),
        lambda a: lax.linalg.svd(a, full_matrices=False, subset_by_index=(0, 1)),
    ],
)
def test_pivoting_and_subsets_are_refused(function: Callable) -> None:
    with pytest.raises((ErrorList, Unsupported), match="E105"):
        smelt.trace(function, "c64[3,3]")
