"""During a trace, jax.numpy creates the arrays of symbolic size that code requests from NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

SIZES = [{"N": size} for size in (1, 2, 5)]

MADE = {
    "ranges": lambda x: np.arange(x.shape[0]) + x[:, 0],
    "every second": lambda x: np.arange(1, 2 * x.shape[0], 2),
    "of a type": lambda x: np.arange(x.shape[0], dtype=np.float32) / 2,
    "backwards": lambda x: x[np.arange(x.shape[0])[::-1]],
    "constants": lambda x: (np.zeros(x.shape[0]) + x[:, 0], np.full(x.shape, 2.0) * x),
    "integers": lambda x: np.ones((x.shape[0], 3), np.int32),
    "matrices": lambda x: (np.eye(x.shape[0]) @ x, np.tri(x.shape[0]) @ x),
    "diagonals": lambda x: (np.eye(x.shape[0], k=1), np.identity(x.shape[0])),
    "steps": lambda x: np.linspace(0, 1, num=x.shape[0], endpoint=False),
    "tiles": lambda x: np.tile(np.arange(3.0), (x.shape[0], 1)) + x,
    "repeats": lambda x: np.repeat(np.arange(3)[None], x.shape[0], axis=0) + x,
    "broadcasts": lambda x: np.broadcast_to(np.arange(3.0), x.shape) + x,
    "masks": lambda x: np.arange(x.shape[0])[None] <= np.arange(x.shape[0])[:, None],
    "floats": lambda x: (jnp.arange(0.0, x.shape[0]), np.arange(1.0, x.shape[0] + 1, 2.0)),
    "floats as integers": lambda x: jnp.arange(x.shape[0], 0.0, -1.0, dtype=jnp.int32),
}


@pytest.mark.parametrize("fn", MADE.values(), ids=MADE)
def test_arrays_of_a_symbolic_size(check, fn):
    check(fn, "f32[N,3]", sizes=SIZES)


def test_arrays_of_fixed_sizes_stay_numpy_arrays():
    def table(x):
        made = np.arange(4), np.zeros((4, 3)), np.tile(np.ones(3), (4, 1)), np.eye(4)
        assert all(type(each) is np.ndarray for each in made)
        made[1][0] = 1.0
        return made[1] + x

    trace(table, "f32[4,3]")
    trace(lambda x: table(x[:1]), "f32[N,3]")


def test_outside_of_a_trace_nothing_is_replaced():
    before = np.arange, np.zeros, jnp.arange
    trace(lambda x: np.arange(x.shape[0]) + x, "f32[N]")
    assert (np.arange, np.zeros, jnp.arange) == before


REFUSED = {
    "a length that rounds": lambda x: np.arange(x.shape[0] * 0.1),
    "a length that depends on data": lambda x: np.arange(x[0, 0]),
    "a step of a size": lambda x: np.arange(0.5, 9, x.shape[0] - 0.5),
    "a quotient of sizes": lambda x: jnp.arange(x.shape[0] / (x.shape[0] + 1)),
    "a length in half precision": lambda x: jnp.arange(jnp.float16(x.shape[0])),
    "an order in memory": lambda x: np.zeros(x.shape, order="F"),
    "a dtype that is none": lambda x: np.zeros(x.shape[0], dtype="no such type"),
    "nothing filled": lambda x: np.empty(x.shape[0]),
    "written in place": lambda x: np.zeros(x.shape[0]).__setitem__(0, 1.0),
}


@pytest.mark.parametrize("fn", REFUSED.values(), ids=REFUSED)
def test_arrays_that_jax_cannot_make_are_refused_at_the_users_line(fn):
    with pytest.raises(SmeltError) as caught:
        trace(fn, "f32[N,3]")
    assert caught.value.code in ("E112", "E113")
    assert "test_symbolic_arrays.py" in caught.value.at[0]


RANGES = {
    "half of a size": lambda n: jnp.arange(n / 2),
    "of numpy": lambda n: np.arange(n / 2).astype(np.float32),
    "halves": lambda n: jnp.arange(n - 4.0, n, 0.5),
    "downwards": lambda n: jnp.arange(n * 1.5 + 1, -2.0, -0.25),
    "empty": lambda n: jnp.arange(n + 0.5, n / 2),
    "from a fraction": lambda n: jnp.arange(0.5, n),
    "an array of a size": lambda n: jnp.arange(jnp.asarray(n) + 1),
    "integers": lambda n: jnp.arange(1.5, n / 2, dtype=int),
    "half precision": lambda n: jnp.arange(n / 2, dtype=jnp.float16),
    "a float beyond the sum": lambda n: jnp.arange(2 * (n - 0.25) - -n),
}


def test_ranges_between_exact_fractions_of_a_size(check):
    """The lengths are integers in every run, so they are sizes. One model has all ranges."""

    def ranges(x):
        return [make(x.shape[0]) for make in RANGES.values()]

    check(ranges, "f32[N]", sizes=[{"N": size} for size in (1, 2, 3, 8)], compiled=False)


def test_the_short_time_fourier_transform_of_an_open_length(check):
    def parts(x):
        _, times, found = jax.scipy.signal.stft(x, nperseg=16)
        return times, jnp.abs(found)

    sizes = [{"S": 16}, {"S": 21}]
    check(parts, "f32[S]", sizes=sizes, constraints=["S >= 16"], atol=1e-5)
