"""Padding with an array's own elements, and splits, along axes of symbolic size."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from smelt.errors import SmeltError, UsageError
from smelt.frontends.jax import trace

SIZES = [{"N": size} for size in (1, 2, 3, 7)]


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "wrap", "edge"])
def test_pads(check, mode):
    """The pads are longer than the axis, or as long."""

    def fn(x):
        return (
            jnp.pad(x, ((2, 5), (0, 1)), mode=mode),
            jnp.pad(x, ((0, 0), (0, x.shape[0])), mode=mode),
        )

    check(fn, "f32[N,3]", sizes=SIZES)


def test_odd_reflections(check):
    """JAX's own code pads if the size is known to be sufficient; else the error has a constraint."""

    def fn(x):
        return jnp.pad(x, 2, mode="reflect", reflect_type="odd")

    with pytest.raises(UsageError, match="'N >= 3'"):
        trace(fn, "f32[N]")
    check(fn, "f32[N]", constraints=("N >= 3",), sizes=SIZES[2:])


@pytest.mark.parametrize("parts", [1, 3, np.int64(4)])
def test_parts(check, parts):
    def fn(x):
        return jnp.array_split(x, parts), jnp.array_split(x.T, parts, axis=-1)

    check(fn, "f32[N,2]", sizes=SIZES)


def test_a_split_into_no_parts_is_an_error_as_in_jax():
    def fn(x):
        return x.sum(), *jnp.array_split(x, 0)

    with pytest.raises(UsageError, match="ZeroDivisionError"):
        trace(fn, "f32[N]")


TWICE_SPELLED = {
    "neighbours": lambda u: u[2:] - 2 * u[1:-1] + u[:-2],
    "differences": lambda u: (jnp.diff(u, n=2), jnp.diff(jnp.diff(u))),
    "in place": lambda u: u.at[1:-1].add(jnp.diff(jnp.diff(u))),
    "later": lambda u: u[3:] * u[:-3] + u[1:-2],
    "turned": lambda u: (
        jnp.concatenate([u[2:], u[:2]]) + u,
        jnp.concatenate([u[:-2], u[-2:]]) * u,
    ),
}


@pytest.mark.parametrize("name", TWICE_SPELLED)
def test_slices_of_equal_sizes_with_different_expressions(check, name):
    check(TWICE_SPELLED[name], "f32[N]", sizes=[{"N": size} for size in (1, 2, 3, 8)])


def test_sizes_that_differ_somewhere_are_not_equal():
    with pytest.raises(SmeltError, match="E113"):
        trace(lambda u: u[2:] + u[:-3], "f32[N]")
    with pytest.raises(SmeltError, match="E113"):
        trace(lambda u, v: u[2:] + v[:-2], "f32[N]", "f32[M]")
