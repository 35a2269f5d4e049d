"""Slices of axes with open sizes, sizes of 0 and 1 included."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt
from smelt.ir import text
from smelt.ir.rows import FIRST, LAST, rows_taken


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize(
    "cut",
    [(-1, LAST, 1), (-3, -1, 1), (0, -2, 1), (-2, 2, 1), (1, 4, 2), (-1, FIRST, -2), (3, 0, -1)],
)
def test_rows_of_an_open_size(cut: tuple[int, int, int], engine: str) -> None:
    start, end, step = cut
    run = smelt.compile(
        text.parse(
            f"g (float[N,2] x) => (float[m,2] y) <int64[1] s = {{{start}}}, int64[1] e = {{{end}}}, "
            f"int64[1] a = {{0}}, int64[1] p = {{{step}}}> {{ h = Slice(x, s, e, a, p) y = Neg(h) }}"
        ),
        target="host",
        engine=engine,
    )
    for size in (0, 1, 2, 3, 8):
        x = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
        np.testing.assert_array_equal(run(x)[0], -x[list(rows_taken(size, cut))])


FUNCTIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "a flip behind a scan over a flip": lambda x: jnp.flip(
        jax.lax.scan(lambda c, v: (c + v, c), jnp.zeros(3), jnp.flip(x, 0))[1], 0
    ),
    "a roll": lambda x: jnp.roll(x, 1, 0),
    "a roll of all elements": lambda x: jnp.roll(x, -2),
    "the last rows": lambda x: jnp.sum(x[-2:], 0),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_jax_that_cut_open_sizes(name: str) -> None:
    function = FUNCTIONS[name]
    run = smelt.compile(function, "f32[N,3]", target="host", engine="numpy")
    for size in (2, 3, 7):
        x = np.arange(3 * size, dtype=np.float32).reshape(size, 3)
        np.testing.assert_allclose(run(x)[0], function(jax.device_put(x)), rtol=1e-6)
