"""Special functions in ONNX Runtime against JAX, at random numbers, poles and other edges."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax import lax
from sampling import sampled

GAMMA_EDGES = (0.0, -0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 1.5, -3.5, 9.99, 10.0, 77.7, -77.7)
SIZES = (1e-30, 1e-6, -1e-6, 1e4, 1e10, 1e30, np.inf, -np.inf, np.nan)
EDGES = np.array([*GAMMA_EDGES, *SIZES])
TOLERANCE = {"f32": {"rtol": 2e-5, "atol": 2e-6}, "f64": {"rtol": 1e-12, "atol": 1e-13}}
DTYPES = {"f32": np.float32, "f64": np.float64}


def inputs(dtype: str, low: float = -20, high: float = 40) -> np.ndarray:
    between = np.linspace(low, high, 331)
    return np.concatenate([EDGES, between]).astype(DTYPES[dtype])


def check_one(check, fn, x: np.ndarray, dtype: str, **tolerance: float) -> None:
    limits = {**TOLERANCE[dtype], **tolerance}
    check(fn, f"{dtype}[{x.size}]", inputs=[[x]], x64=dtype == "f64", **limits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", [lax.lgamma, lax.digamma], ids=lambda fn: fn.__name__)
def test_gamma_functions(check, fn, dtype):
    check_one(check, fn, inputs(dtype), dtype)


ONE_OPERAND = [lax.bessel_i0e, lax.bessel_i1e, lax.erf, lax.erfc, lax.erf_inv]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", sampled(ONE_OPERAND, 2), ids=lambda fn: fn.__name__)
def test_functions_of_one_operand(check, fn, dtype):
    low, high = (-1.1, 1.1) if fn is lax.erf_inv else (-30, 30)
    # Relative precision also of the tails, where JAX still has a normal number.
    x = inputs(dtype, low, high)
    if fn is lax.erfc:
        x = x[~(x > 9)] if dtype == "f32" else x
    check_one(check, fn, x, dtype, atol=1e-37 if dtype == "f32" else 1e-307)


def test_zeta(check):
    s = np.array([-2, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4.5, 6, 20, 30, np.inf, np.nan])
    q = np.array([-7, -2, -1.5, -0.25, 0, 0.5, 1, 1.5, 2, 3, 30, 1e4, np.inf, np.nan])
    pairs = [np.ravel(a) for a in np.meshgrid(s, q)]
    for dtype in DTYPES:
        specs = [f"{dtype}[{pairs[0].size}]"] * 2
        check(lax.zeta, *specs, inputs=[pairs], x64=dtype == "f64", **TOLERANCE[dtype])


def test_polygamma(check):
    n = np.array([-1, 0, 0.5, 1, 2, 3, 13, np.nan])
    x = np.array([-2, -1.5, -0.25, 0, 0.5, 1, 1.5, 2, 3, 30, 1e3, np.nan])
    pairs = [np.ravel(a) for a in np.meshgrid(n, x)]
    for dtype in DTYPES:
        specs = [f"{dtype}[{pairs[0].size}]"] * 2
        check(lax.polygamma, *specs, inputs=[pairs], x64=dtype == "f64", rtol=1e-4)


INCOMPLETE = [lax.igamma, lax.igammac, lax.igamma_grad_a, lax.random_gamma_grad]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fn", INCOMPLETE, ids=["igamma", "igammac", "igamma_grad_a", "random"])
def test_incomplete_gamma_functions(check, fn, dtype):
    edges = [-np.inf, -2, -0.5, 0, 0.5, 1, 1.5, 3, 30, np.inf, np.nan]
    grid = [np.ravel(g) for g in np.meshgrid(edges, edges)]
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(-2, 2.5, 300)
    x = a * rng.uniform(0.2, 3, 300)
    pairs = [np.concatenate([grid[0], a]), np.concatenate([grid[1], x])]
    limits = {"rtol": 1e-3, "atol": 1e-5} if dtype == "f32" else {"rtol": 1e-10, "atol": 1e-13}
    specs = [f"{dtype}[{pairs[0].size}]"] * 2
    check(fn, *specs, inputs=[pairs], x64=dtype == "f64", **limits)


@pytest.mark.parametrize("dtype", DTYPES)
def test_incomplete_beta_function(check, dtype):
    edges, places = [-1, 0, 0.5, 2, np.inf, np.nan], [-0.5, 0, 0.3, 1, 1.5, np.nan]
    grid = [np.ravel(g) for g in np.meshgrid(edges, edges, places)]
    rng = np.random.default_rng(0)
    random = [10 ** rng.uniform(-1, 2, 300), 10 ** rng.uniform(-1, 2, 300), rng.uniform(size=300)]
    numbers = [np.concatenate(pair) for pair in zip(grid, random, strict=True)]
    limits = {"rtol": 1e-3, "atol": 1e-5} if dtype == "f32" else {"rtol": 1e-10, "atol": 1e-13}
    specs = [f"{dtype}[{numbers[0].size}]"] * 3
    check(lax.betainc, *specs, inputs=[numbers], x64=dtype == "f64", **limits)


def test_operands_of_a_loop_broadcast(check):
    fn = lambda a, x: jax.scipy.special.gammainc(jax.numpy.abs(a)[:, None], x**2)  # noqa: E731
    check(fn, "f32[B]", "f32[S]", rtol=1e-4)
    check(fn, "f32[0]", "f32[3]")


def test_an_order_for_all_numbers(check):
    check(lambda x: jax.scipy.special.polygamma(1, x), "f32[B,S]", rtol=1e-4)


@pytest.mark.parametrize("dtype", [jax.numpy.float16, jax.numpy.bfloat16])
def test_narrow_floats_keep_their_type(check, dtype):
    x = np.linspace(0.1, 9, 50)
    fn = lambda x: lax.lgamma(x.astype(dtype)).astype(np.float32)  # noqa: E731
    check(fn, "f32[50]", inputs=[[x]], rtol=1e-2, atol=5e-3)


@pytest.mark.parametrize("shape", [(), (0,), (1, 1), (2, 0, 3)])
def test_scalars_and_empty_arrays(check, shape):
    text = ",".join(map(str, shape))
    check(lax.lgamma, f"f32[{text}]", inputs=[[np.full(shape, 3.5, np.float32)]])


def test_unknown_sizes(check):
    check(lambda x: lax.digamma(jax.numpy.exp(x)), "f32[B,S]")
