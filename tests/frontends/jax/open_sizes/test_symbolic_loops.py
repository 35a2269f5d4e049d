"""JAX functions that unroll over a size can be traced at symbolic sizes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

SIZES = [{"N": size} for size in (1, 2, 5, 8)]
KEY = jax.random.key(3)


def _recurrence(before, after):
    return before[0] * after[0], after[0] * before[1] + after[1]


SCANS = {
    "a recurrence backward": lambda x: lax.associative_scan(
        _recurrence, (jnp.tanh(x), x), reverse=True
    ),
    "along the last axis": lambda x: lax.associative_scan(
        jnp.maximum, jnp.round(x).astype(int).T, axis=-1
    ),
    "mapped": lambda x: jax.vmap(lambda c: lax.associative_scan(jnp.add, x * c))(jnp.arange(3.0)),
}


SLOW_SCANS = {
    "products of matrices": lambda x: lax.associative_scan(
        jnp.matmul, jnp.tanh(x)[:, :, None] * jnp.ones(3)
    ),
    "its derivative": jax.grad(
        lambda x: lax.associative_scan(_recurrence, (jnp.tanh(x), x))[1][-1].sum()
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_SCANS)
def test_associative_scans_of_more(check, name):
    check(SLOW_SCANS[name], "f32[N,3]", sizes=SIZES, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SCANS)
def test_associative_scans(check, name):
    check(SCANS[name], "f32[N,3]", sizes=SIZES, rtol=1e-4, atol=1e-5)


def test_a_scan_whose_function_fails_names_the_line():
    with pytest.raises(SmeltError, match="your function raised ZeroDivisionError") as caught:
        trace(lambda x: lax.associative_scan(lambda a, b: 1 // 0, x), "f32[N]")
    assert "test_symbolic_loops.py" in caught.value.at[0]


SHUFFLES = {
    "numbers": lambda x: jax.random.permutation(KEY, x.shape[0]),
    "rows": lambda x: jax.random.permutation(KEY, x),
    "each row": lambda x: jax.random.permutation(KEY, x, axis=1, independent=True),
}


@pytest.mark.parametrize("name", SHUFFLES)
def test_permutations(check, name):
    check(SHUFFLES[name], "f32[N,3]", sizes=SIZES)


def test_choices_without_replacement(check):
    def fn(x):
        return jax.random.choice(KEY, x, (3,), replace=False)

    check(fn, "f32[N]", constraints=("N >= 3",), sizes=SIZES[2:])


def test_more_elements_are_sorted_more_often(check):
    """JAX shuffles up to 1,625 elements by one sort, and more elements by two sorts."""
    sizes = [{"N": size} for size in (1625, 1626, 1627)]
    check(SHUFFLES["rows"], "f32[N]", sizes=sizes)
