"""The order in which JAX sorts and searches: -0 before 0, NaN last."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.lax import lax as internal

ORDER = {p.name: p for p in (internal.eq_to_p, internal.le_to_p, internal.lt_to_p)}
EDGES = np.array([0.0, -0.0, 1.5, -2.5, 1e30, np.inf, -np.inf, np.nan])
PAIRS = [a.ravel() for a in np.meshgrid(EDGES, EDGES)]


@pytest.mark.parametrize("name", ORDER)
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_every_pair_of_edges(check, name, dtype):
    with np.errstate(over="ignore"):
        check(ORDER[name].bind, f"{dtype}[64]", f"{dtype}[64]", inputs=[PAIRS], x64=True)


@pytest.mark.parametrize("name", ORDER)
def test_other_types(check, name):
    compare = ORDER[name].bind
    check(compare, "i32[B,3]", "i32[B,3]")
    check(compare, "u8[5]", "u8[5]")
    check(compare, "bool[4]", "bool[4]", inputs=[[[0, 0, 1, 1], [0, 1, 0, 1]]])
    halves = lambda a, b: compare(a.astype(jnp.bfloat16), b.astype(jnp.bfloat16))  # noqa: E731
    check(halves, "f32[64]", "f32[64]", inputs=[PAIRS])


def test_searches_by_it(check):
    table = np.array([-np.inf, -1.0, 0.0, 0.0, 2.0, np.inf], np.float32)
    for side in ("left", "right"):
        check(lambda x: jnp.searchsorted(table, x, side=side), "f32[8]", inputs=[[EDGES]])  # noqa: B023
    check(lambda a, v: jnp.searchsorted(lax.sort(a), v), "f32[6]", "f32[B]")
