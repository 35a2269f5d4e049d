"""Matrix factorizations in C give the results of the column loops that the operators' bodies
define.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt

Matrix = jax.Array


def _positive(a: Matrix) -> Matrix:
    return a @ jnp.swapaxes(a, -1, -2) + 4 * jnp.eye(a.shape[-1], dtype=a.dtype)


def _recombined(a: Matrix) -> Matrix:
    u, s, v = jnp.linalg.svd(a, full_matrices=False)
    return (u * s[..., None, :]) @ v


def _diagonalized(a: Matrix) -> Matrix:
    values, vectors = jnp.linalg.eigh(_positive(a))
    return (vectors * values[..., None, :]) @ jnp.swapaxes(vectors, -1, -2)


FUNCTIONS: dict[str, Callable[[Matrix], object]] = {
    "cholesky": lambda a: jnp.linalg.cholesky(_positive(a)),
    "not positive": lambda a: jnp.linalg.cholesky(-_positive(a)),
    "solve": lambda a: jnp.linalg.solve(a, a + 1),
    "gradient of solve": jax.grad(lambda a: jnp.linalg.solve(_positive(a), a).sum()),
    "slogdet": jnp.linalg.slogdet,
    "lu": jax.scipy.linalg.lu,
    "qr": jnp.linalg.qr,
    "svd": _recombined,
    "eigh": _diagonalized,
    "eigvalsh": lambda a: jnp.linalg.eigvalsh(_positive(a)),
    "lstsq": lambda a: jnp.linalg.lstsq(a, a[..., 0])[0],
    "triangular": lambda a: jax.scipy.linalg.solve_triangular(a + 3 * jnp.eye(len(a)), a),
    "expm": jax.scipy.linalg.expm,
    "bits": lambda a: (jnp.signbit(a), jnp.nextafter(a, a + 1), jnp.copysign(a, a.T)),
}
QUICK = ("cholesky", "solve", "qr", "bits")
BATCHED = ("cholesky", "solve", "slogdet", "qr", "svd", "eigh", "eigvalsh", "not positive")


def check(name: str, shape: tuple[int, ...], dtype: str) -> None:
    wide = dtype == "float64"
    given = np.random.default_rng(7).standard_normal(shape).astype(dtype)
    with jax.enable_x64(wide):
        wanted = jax.tree.leaves(FUNCTIONS[name](jax.device_put(given)))
        spec = jax.ShapeDtypeStruct(shape, dtype)
    results = smelt.compile(FUNCTIONS[name], spec, target="c", x64=wide)(given)
    results = results if isinstance(results, tuple | list) else [results]
    for got, want in zip(results, wanted, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        tolerance = 1e-9 if wide else 2e-4
        np.testing.assert_allclose(got, np.asarray(want), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FUNCTIONS],
)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_as_jax(name: str, dtype: str) -> None:
    check(name, (5, 5), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (24, 24), (3, 4, 4), (2, 3, 2, 2), (0, 3, 3)])
@pytest.mark.parametrize("name", BATCHED)
def test_of_any_size(name: str, shape: tuple[int, ...]) -> None:
    check(name, shape, "float32")


@pytest.mark.parametrize("name", ["solve", pytest.param("qr", marks=pytest.mark.slow)])
def test_at_sizes_that_each_run_tells(name: str) -> None:
    artifact = smelt.compile(FUNCTIONS[name], "f32[N,N]", target="c", dims={"N": (1, 6)})
    for size in (1, 2, 6):
        given = np.random.default_rng(size).standard_normal((size, size)).astype(np.float32)
        wanted = jax.tree.leaves(FUNCTIONS[name](jax.device_put(given)))
        for got, want in zip(artifact(given), wanted, strict=True):
            np.testing.assert_allclose(got, np.asarray(want), rtol=2e-4, atol=2e-4)
