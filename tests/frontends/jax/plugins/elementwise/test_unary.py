"""Elementwise operators of one operand, at random numbers and at the edges of their domains."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

EDGES = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        1e-06,
        -1e-06,
        1e-30,
        3.3,
        -7.7,
        20.0,
        -20.0,
        80.0,
        -80.0,
        10000000000.0,
        -10000000000.0,
        np.inf,
        -np.inf,
        np.nan,
        0.49999997,
        -0.49999997,
    ],
    np.float32,
)

SMOOTH = [
    *(lax.abs, lax.acos, lax.acosh, lax.asin, lax.asinh, lax.atan, lax.atanh, lax.cbrt, lax.ceil),
    *(lax.cos, lax.cosh, lax.erf, lax.erfc, lax.exp, lax.exp2, lax.expm1, lax.floor, lax.is_finite),
    *(lax.log, lax.log1p, lax.logistic, lax.neg, lax.reciprocal, lax.rsqrt, lax.sign, lax.sin),
    *(lax.sinh, lax.sqrt, lax.square, lax.tan, lax.tanh),
]


TOLERANCES = {"f16": (4e-3, 1e-6), "f32": (2e-5, 3e-7), "f64": (1e-12, 1e-14)}


@pytest.mark.parametrize("fn", SMOOTH, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("dtype", sampled(TOLERANCES, 2))
def test_agrees_at_edges_and_between(check, fn, dtype):
    x = EDGES
    if fn in (lax.cos, lax.sin, lax.tan):
        x = x[np.abs(x) < 1e6]  # Beyond, argument reduction differs between libraries.
    between = np.linspace(-9, 9, 181, dtype=np.float32)
    rtol, atol = TOLERANCES[dtype]
    array = np.concatenate([x, between])  # One array, since XLA compiles each size anew.
    with np.errstate(over="ignore"):
        spec = f"{dtype}[{array.size}]"
        check(fn, spec, inputs=[[array]], rtol=rtol, atol=atol, x64=dtype == "f64")


@pytest.mark.parametrize("method", list(lax.RoundingMethod), ids=lambda m: m.name)
def test_rounds_halves_as_asked(check, method):
    fn = lambda x: lax.round(x, method)  # noqa: E731
    check(fn, "f32[25]", inputs=[[EDGES]], rtol=0, atol=0)


@pytest.mark.parametrize("fn", [lax.log1p, lax.expm1], ids=lambda fn: fn.__name__)
def test_keeps_precision_near_zero(check, fn):
    x = np.geomspace(1e-12, 1, 60).astype(np.float32)
    check(fn, "f32[120]", inputs=[[np.concatenate([x, -x * 0.99])]], rtol=1e-6, atol=0)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    "fn",
    [lax.log1p, lax.expm1, lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)],
    ids=["log1p", "expm1", "round"],
)
def test_keeps_the_sign_of_zero(check, fn, wide):
    """1 / x tells -0 from 0."""
    spec = f"f{64 if wide else 32}[2]"
    check(lambda x: 1 / fn(x), spec, inputs=[[np.array([-0.0, 0.0])]], x64=wide)


@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 3, 4, 7])
def test_integer_powers(check, power):
    check(lambda x: lax.integer_pow(x, power), "f32[25]", inputs=[[EDGES]], rtol=1e-6)
    if power >= 0:
        check(lambda x: lax.integer_pow(x, power), "i32[4]", inputs=[[[-3, 0, 1, 77777]]])


@pytest.mark.parametrize(
    "fn", [lax.neg, lax.abs, lax.sign, lax.bitwise_not], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("dtype", ["i8", "i32", "u8", "u32"])
def test_integers(check, fn, dtype):
    if fn is lax.abs and dtype[0] == "u":
        fn = lax.sign  # JAX takes no absolute value of unsigned numbers.
    values = [0, 1, 5, 127] if dtype[0] == "u" else [0, -1, 5, -128]
    check(fn, f"{dtype}[4]", inputs=[[values]])


def test_not_of_booleans(check):
    check(jnp.logical_not, "bool[2]", inputs=[[[True, False]]])


def test_inverse_error_function(check):
    x = np.concatenate([np.linspace(-1, 1, 101), [0.999999, -0.9999, 1.5, np.nan]])
    check(lax.erf_inv, "f32[105]", inputs=[[x.astype(np.float32)]], rtol=1e-5)


def test_float16_and_bfloat16_keep_their_type(check):
    check(lambda x: jax.nn.relu(x) * 2, "f16[B,4]", rtol=1e-3)


@pytest.mark.parametrize(
    "fn",
    [
        jax.nn.gelu,
        lambda x: jax.nn.gelu(x, approximate=False),
        jax.nn.silu,
        jax.nn.softplus,
        jax.nn.elu,
        jax.nn.mish,
        jax.nn.log_sigmoid,
        jax.nn.softmax,
        jax.nn.log_softmax,
        jax.nn.leaky_relu,
        jax.nn.hard_swish,
        jax.nn.selu,
        jax.nn.celu,
        jax.nn.soft_sign,
        jax.nn.standardize,
        jax.nn.glu,
        jax.nn.relu6,
        jax.nn.squareplus,
        jax.nn.logsumexp,
    ],
    ids=lambda fn: fn.__name__,
)
def test_activations(check, fn):
    check(fn, "f32[B,8]", rtol=1e-4, atol=1e-6)
