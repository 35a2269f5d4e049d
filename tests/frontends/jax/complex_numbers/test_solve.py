"""Linear systems in complex numbers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import smelt
from smelt.frontends.jax import trace

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        ("c64[3,N,2]", (3, 0, 2)),
        pytest.param("c64[N]", (0,), marks=SLOW),
        pytest.param("c64[N,2]", (0, 2), marks=SLOW),
        pytest.param("f32[N]", (0,), marks=SLOW),
    ],
)
def test_systems_of_symbolic_size(spec, shape):
    def fn(a, b):
        return jnp.linalg.solve(a + 4 * jnp.eye(a.shape[-1]), b)

    batch = shape[:-2] if len(shape) > 2 else ()
    matrices = ",".join([*map(str, batch), "N", "N"])
    artifact = smelt.compile(trace(fn, f"c64[{matrices}]", spec))
    for size in (1, 4):
        a, b = random((*batch, size, size)), random(tuple(n or size for n in shape))
        b = b.real if spec.startswith("f32") else b
        (got,) = artifact(a, b)
        np.testing.assert_allclose(got, fn(a, b), rtol=1e-4, atol=1e-4)


def test_inverses():
    artifact = smelt.compile(trace(jnp.linalg.inv, "c64[3,3]"))
    a = random((3, 3)) + 4 * np.eye(3, dtype=np.complex64)
    np.testing.assert_allclose(artifact(a)[0], np.linalg.inv(a), rtol=1e-4, atol=1e-4)


def random(shape):
    rng = np.random.default_rng(0)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
