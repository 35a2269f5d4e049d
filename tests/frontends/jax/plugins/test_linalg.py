"""Linear algebra from JAX to the host target, against JAX itself."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt


def positive(n: int) -> np.ndarray:
    a = np.random.default_rng(n).normal(size=(2, n, n)).astype(np.float32)
    return a @ a.transpose(0, 2, 1) + n * np.eye(n, dtype=np.float32)


@pytest.mark.parametrize("n", [1, 3, 16])
def test_cholesky(n: int) -> None:
    a = positive(n)
    artifact = smelt.compile(jnp.linalg.cholesky, f"f32[B,{n},{n}]", target="host")
    np.testing.assert_allclose(artifact(a)[0], jnp.linalg.cholesky(a), rtol=1e-5, atol=1e-5)


def test_not_positive_definite_is_nan_as_in_jax() -> None:
    a = -np.eye(3, dtype=np.float32)
    artifact = smelt.compile(jnp.linalg.cholesky, "f32[3,3]", target="host")
    np.testing.assert_array_equal(artifact(a)[0], jnp.linalg.cholesky(a))


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("trans", [0, 1])
def test_triangular_solve(lower: bool, trans: int) -> None:
    def solve(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.scipy.linalg.solve_triangular(a, b, lower=lower, trans=trans)

    rng = np.random.default_rng(0)
    a = (rng.normal(size=(4, 4)) + 4 * np.eye(4)).astype(np.float32)
    b = rng.normal(size=(4, 2)).astype(np.float32)
    artifact = smelt.compile(solve, "f32[4,4]", "f32[4,2]", target="host")
    np.testing.assert_allclose(artifact(a, b)[0], solve(a, b), rtol=1e-5, atol=1e-5)


def test_plain_onnx_refuses_what_it_cannot_express() -> None:
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.compile(jnp.linalg.cholesky, "f32[3,3]", target="onnx")
    assert caught.value.code == "E201"
    assert "such as host" in str(caught.value)
