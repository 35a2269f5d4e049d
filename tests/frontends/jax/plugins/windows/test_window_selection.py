"""Derivatives of pooling select one element of each window."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

from smelt.errors import Unsupported
from smelt.frontends.jax import trace

WINDOWS = {
    "plain": ((2, 2), (2, 2), "VALID", (1, 1), (1, 1)),
    "overlapping": ((3, 2), (1, 1), "SAME", (1, 1), (1, 1)),
    "padding": ((2, 3), (2, 1), ((2, 1), (0, 4)), (1, 1), (1, 1)),
    "negative padding": ((2, 2), (1, 1), ((-1, 1), (0, -1)), (1, 1), (1, 1)),
    "base dilation": ((3, 2), (1, 2), ((1, 1), (0, 0)), (2, 3), (1, 1)),
    "window dilation": ((2, 3), (1, 1), ((1, 0), (0, 2)), (1, 1), (2, 2)),
    "one dim": ((1, 3), (1, 2), "VALID", (1, 1), (1, 1)),
}


REVERSIBLE = {"plain", "overlapping", "padding", "base dilation", "one dim"}
BACKWARD = {name: window for name, window in WINDOWS.items() if name in REVERSIBLE}
"""JAX itself has no derivative of the others."""


def pool(window, smallest=False):
    start, computation = (np.inf, lax.min) if smallest else (-np.inf, lax.max)
    return lambda x: lax.reduce_window(x, start, computation, *window)


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS.keys())
@pytest.mark.parametrize("smallest", [False, True])
def test_forward(check, window, smallest):
    fn = lambda x, t: jax.jvp(pool(window, smallest), (x,), (t,))[1]  # noqa: E731
    check(fn, "f32[5,6]", "f32[5,6]")


@pytest.mark.parametrize("window", sampled(BACKWARD.values(), 2), ids=BACKWARD.keys())
@pytest.mark.parametrize("smallest", [False, True])
def test_backward(check, window, smallest):
    fn = jax.grad(
        lambda x: (pool(window, smallest)(x) ** 2).sum(where=jnp.isfinite(pool(window)(x)))
    )
    check(fn, "f32[5,6]", rtol=1e-5)


def test_backward_over_images_of_unknown_number_and_size(check):
    window = ((1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
    fn = jax.grad(lambda x: (pool(window)(x) ** 2).sum())
    check(fn, "f32[B,S,6,3]", rtol=1e-5)


def cotangents(window):
    def fn(x):
        y, pull = jax.vjp(pool(window), x)
        return pull(1.0 + jnp.arange(y.size, dtype=x.dtype).reshape(y.shape))[0]

    return fn


ROWS = [
    [[1, 1, 0, 1, 1], [2, 2, 2, 2, 2], [3, 0, 3, 0, 3]],
    [[np.nan, 1, 5, np.nan, 2], [np.nan, np.nan, 0, 1, 2], [1, 2, 3, np.nan, np.nan]],
    [
        [-np.inf, -np.inf, -np.inf, 0, np.inf],
        [np.inf, 0, -np.inf, -np.inf, -np.inf],
        [0.0, -0.0] * 2 + [1],
    ],
    [[np.nan, -np.inf, -np.inf, -np.inf, np.nan]] * 3,
]


@pytest.mark.parametrize("padding", [(0, 0), (1, 2)], ids=str)
def test_equals_nan_and_infinities(check, padding):
    window = ((1, 3), (1, 1), ((0, 0), padding))
    rows = [[row] for row in ROWS]
    check(cotangents(window), "f32[3,5]", inputs=rows)
    tangents = np.arange(15, dtype=np.float32).reshape(3, 5) + 1
    check(
        lambda x, t: jax.jvp(pool(window), (x,), (t,))[1],
        "f32[3,5]",
        "f32[3,5]",
        inputs=[[row, tangents] for row in ROWS],
    )


@pytest.mark.parametrize("dtype", ["f16", "f64"])
def test_element_types(check, dtype):
    window = ((2, 3), (1, 1), "SAME")
    check(
        cotangents(window),
        f"{dtype}[4,5]",
        x64=dtype == "f64",
        rtol=1e-2 if dtype == "f16" else 1e-12,
    )


def test_second_derivative(check):
    window = ((2, 2), (1, 1), "SAME")
    energy = lambda x: (pool(window)(x) ** 2).sum()  # noqa: E731
    check(lambda x, t: jax.jvp(jax.grad(energy), (x,), (t,))[1], "f32[4,4]", "f32[4,4]", rtol=1e-5)


TESTS = {"ge": lax.ge, "gt": lax.gt, "le": lax.le, "lt": lax.lt}
UPDATES = {"add": lax.add, "mul": lax.mul, "max": lax.max, "min": lax.min}


def scatter(select, update):
    scalar = jax.ShapeDtypeStruct((), np.float32)
    bodies = {}
    for name, fn in (("select", select), ("scatter", update)):
        closed = jax.make_jaxpr(fn)(scalar, scalar)
        bodies |= {f"{name}_jaxpr": closed.jaxpr, f"{name}_consts": tuple(closed.consts)}
    window = {"window_dimensions": (2, 2), "window_strides": (1, 2), "padding": ((0, 0), (0, 0))}
    return lambda x, s: lax.select_and_scatter_p.bind(x, s, np.float32(1), **bodies, **window)


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES.keys())
@pytest.mark.parametrize("test", TESTS.values(), ids=TESTS.keys())
def test_any_test_and_update(check, test, update):
    rows = np.array([[1, 2, np.nan, 0], [2, 2, 1, -np.inf], [-np.inf] * 4], np.float32)
    source = np.array([[3, -5], [7, 0.5]], np.float32)
    check(scatter(test, update), "f32[3,4]", "f32[2,2]", inputs=[[rows, source], [-rows, source]])


def test_functions_of_ones_own_are_refused():
    with pytest.raises(Unsupported, match="selects by a function"):
        trace(scatter(lambda a, b: abs(a) > b, lax.add), "f32[3,4]", "f32[2,2]")
    with pytest.raises(Unsupported, match="scatters by a function"):
        trace(scatter(lax.ge, lambda a, b: a + b * b), "f32[3,4]", "f32[2,2]")
