"""Cosine transforms and LU factors of symbolic sizes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import pytest

SIZES = [{"N": size} for size in (1, 2, 5)]


def test_cosine_transforms(check):
    def fn(x):
        return jsp.fft.dct(x), jsp.fft.idct(x, norm="ortho")

    check(fn, "f32[N]", sizes=SIZES[1:], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_cosine_transforms_of_images(check):
    def fn(x):
        return jsp.fft.dctn(x), jsp.fft.idctn(x, norm="ortho")

    sizes = ({"N": 1, "M": 2}, {"N": 4, "M": 3})
    check(fn, "f32[N,M]", sizes=sizes, rtol=1e-4, atol=1e-4)


def test_rows_swapped_by_lu(check):
    def fn(x):
        factors, pivots = jsp.linalg.lu_factor(x[..., ::-1, :] + 3 * jnp.eye(x.shape[-1]))
        vectors = x[..., :1]
        return pivots, jax.vmap(lambda f, p, v: jsp.linalg.lu_solve((f, p), v))(
            factors, pivots, vectors
        )

    check(fn, "f32[2,N,N]", sizes=SIZES[1:], rtol=1e-2, atol=1e-3)


def test_pivots(check):
    """More rows than pivots, in a batch."""

    def fn(x):
        pivots = jax.lax.linalg.lu(x + 3 * jnp.eye(x.shape[-1])[::-1])[1]
        return jax.lax.linalg.lu_pivots_to_permutation(pivots, 2 * x.shape[-1])

    check(fn, "f32[2,N,N]", sizes=SIZES)


@pytest.mark.slow
def test_random_matrices_of_symbolic_size(check):
    def fn(x):
        key, size = jax.random.key(0), x.shape[0]
        return abs(jax.random.orthogonal(key, size)), jax.random.ball(key, size)

    check(fn, "f32[N]", sizes=SIZES[1:], rtol=1e-3, atol=1e-4)
