"""Each LAPACK call in an exported function is read as the JAX function that writes it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import smelt
from smelt.frontends.stablehlo.lapack import solver_of

X = np.random.default_rng(5).standard_normal((3, 5, 5)).astype(np.float32)


def _eig(x):
    w, v = jnp.linalg.eig(x)
    return jnp.sort(jnp.abs(w), -1), jnp.abs(x @ v - v * w[..., None, :])


def _schur(x):
    form, vectors = lax.linalg.schur(x)
    return vectors @ form @ vectors.mT, jnp.tril(form, -2)


FUNCTIONS = {
    "singular values": lambda x: jnp.linalg.svd(x[..., :3], compute_uv=False),
    "eigenvalues": lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x)), -1),
    "eigenvectors": _eig,
    "schur": _schur,
    "schur without vectors": lambda x: jnp.abs(lax.linalg.schur(x, compute_schur_vectors=False)[0]),
    "hessenberg": lambda x: jnp.abs(lax.linalg.hessenberg(x)[0]),
    "tridiagonal": lambda x: [jnp.abs(y) for y in lax.linalg.tridiagonal(x @ x.mT)[1:3]],
    "tridiagonal solve": lambda x: lax.linalg.tridiagonal_solve(
        x[:, 0].at[:, 0].set(0), x[:, 1] + 5, x[:, 2].at[:, -1].set(0), x
    ),
}


OF_COMPLEX = ("singular values", "eigenvalues", "schur without vectors")


@pytest.mark.parametrize(
    ("name", "imaginary"),
    [*((name, 0) for name in FUNCTIONS), *((name, 1j) for name in OF_COMPLEX)],
)
def test_each_lapack_routine_equals_the_jax_function(name, imaginary):
    x = X + imaginary * X[::-1] if imaginary else X
    fn = FUNCTIONS[name]
    given = export.export(jax.jit(fn))(jax.ShapeDtypeStruct(x.shape, x.dtype))
    got = smelt.compile(smelt.trace(bytes(given.serialize())))(x)
    for found, wanted in zip(got, jax.tree.leaves(fn(jax.device_put(x))), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_other_routines_are_unknown():
    assert solver_of("lapack_sgtsv_ffi") is not None
    assert solver_of("lapack_sgesvx_ffi") is None
    assert solver_of("cusolver_geqrf_ffi") is None
