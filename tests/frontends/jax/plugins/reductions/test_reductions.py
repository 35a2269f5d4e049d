"""Reductions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from smelt.errors import Unsupported
from smelt.frontends.jax import trace

FNS = [
    jnp.sum,
    jnp.prod,
    jnp.max,
    jnp.min,
    jnp.mean,
    jnp.argmax,
    jnp.argmin,
    jnp.all,
    jnp.any,
    jnp.var,
]


@pytest.mark.parametrize("fn", FNS, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("dtype", ["f32", "i32", "i8", "u8", "bool"])
def test_reduces_one_axis(check, fn, dtype):
    check(lambda x: fn(x, axis=1), f"{dtype}[B,5]", rtol=1e-4)


@pytest.mark.parametrize("fn", [jnp.sum, jnp.max, jnp.prod, jnp.any], ids=lambda fn: fn.__name__)
def test_reduces_several_or_all_axes(check, fn):
    check(lambda x: (fn(x), fn(x, axis=(0, 2)), fn(x, axis=())), "f32[B,3,4]", rtol=1e-4)


@pytest.mark.parametrize("fn", [jnp.sum, jnp.prod, jnp.all, jnp.any], ids=lambda fn: fn.__name__)
def test_empty_reductions_are_the_identity(check, fn):
    check(lambda x: fn(x, axis=1), "f32[3,0]")


@pytest.mark.parametrize("name", ["reduce_max_p", "reduce_min_p"])
def test_extremes_of_empty_axes(check, name):
    fn = lambda x: getattr(lax, name).bind(x, axes=(0,), out_sharding=None)  # noqa: E731
    check(fn, "f32[0,2]")
    check(fn, "i32[0,2]")


@pytest.mark.parametrize("fn", [jnp.max, jnp.min], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_extremes_propagate_nan(check, fn, dtype):
    rows = [[1, np.nan, 3], [np.inf, -np.inf, 1], [np.nan, np.inf, 0], [1, 2, 6e4]]
    check(lambda x: (fn(x, axis=1), fn(x, axis=0)), f"{dtype}[4,3]", inputs=[[rows]])


@pytest.mark.parametrize("fn", [jnp.argmax, jnp.argmin], ids=lambda fn: fn.__name__)
def test_first_of_equals_and_first_nan(check, fn):
    rows = [[1, 3, 3, 1], [np.nan, 1, 2, 3], [5, np.inf, np.nan, np.nan], [-np.inf, 0, -np.inf, 0]]
    check(lambda x: fn(x, axis=1), "f32[4,4]", inputs=[[rows]])


@pytest.mark.parametrize(
    "fn", [jnp.cumsum, jnp.cumprod, lax.cummax, lax.cummin], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("dtype", ["f32", "i32", "i8"])
def test_running(check, fn, dtype):
    check(lambda x: fn(x, axis=1), f"{dtype}[B,7]", rtol=1e-4)


@pytest.mark.parametrize("fn", [lax.cumsum, lax.cumprod, lax.cummax], ids=lambda f: f.__name__)
def test_running_backwards(check, fn):
    check(lambda x: fn(x, axis=0, reverse=True), "f32[6,2]", rtol=1e-4)


SORTS = {
    "sort": lambda x: jnp.sort(x, axis=1),
    "argsort": lambda x: jnp.argsort(x, axis=1),
    "descending": lambda x: jnp.sort(x, axis=1, descending=True),
    "top_k": lambda x: lax.top_k(x, 3),
    "with values": lambda x: lax.sort((x, x * 2), num_keys=1),
    "two keys": lambda x: lax.sort((jnp.round(x / 4), -x, x + 1), num_keys=2),
    "median": lambda x: jnp.median(x, axis=1),
}


@pytest.mark.parametrize("fn", SORTS.values(), ids=SORTS.keys())
def test_sorts(check, fn):
    check(fn, "f32[B,6]")
    check(fn, "i32[B,6]")


@pytest.mark.parametrize("name", ["sort", "argsort", "top_k"])
def test_sorts_nan_infinities_and_equals(check, name):
    rows = np.array([[np.nan, 1, np.inf, -np.inf, 1, np.nan], [2, 2, 2, 1, 1, 1]], np.float32)
    check(SORTS[name], "f32[2,6]", inputs=[[rows]])


EXTREMES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.0, -0.0, 0.0, -3.0]


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_top_k_is_in_total_order(check, dtype):
    fn = lambda x: (lax.top_k(x, 10)[1], lax.top_k(-x, 10)[1])  # noqa: E731
    check(fn, f"{dtype}[10]", inputs=[[EXTREMES]], x64=dtype == "f64")


@pytest.mark.parametrize("fn", [lax.approx_max_k, lax.approx_min_k], ids=lambda f: f.__name__)
def test_approximate_extremes_are_exact(check, fn):
    check(lambda x: fn(x, 3), "f32[B,40]")
    check(lambda x: fn(x, 3, reduction_dimension=0), "f32[40,2]")


def test_more_candidates_than_asked_for_are_refused():
    with pytest.raises(Unsupported, match="E102"):
        trace(lambda x: lax.approx_max_k(x, 2, aggregate_to_topk=False), "f32[3,4000]")
