"""Symbolic sizes where code computes with a number: the model computes it."""

from __future__ import annotations

import copy
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError, UsageError
from smelt.frontends.jax import trace

SIZES = [{"N": size} for size in (1, 2, 5)]


def test_functions_of_math(check):
    def fn(x):
        n = x.shape[0]
        logs = math.log(n), math.log2(2 * n), math.exp(-n), math.log1p(n)
        return x / math.sqrt(n), x * logs[0] + logs[1], logs[2:], x[: math.ceil(n)]

    check(fn, "f32[N]", sizes=SIZES)
    with pytest.raises(TypeError):
        math.sqrt("4")


def test_powers_and_functions_of_numpy(check):
    def fn(x):
        n = x.shape[0]
        return x * n**-0.5, x * n**1.5, x * n**2, x / np.sqrt(n), x * np.log(n), x[:1] * n**-1

    check(fn, "f32[N]", sizes=SIZES)


def test_numbers_of_sizes_are_weak_in_type():
    assert trace(lambda x: x / math.sqrt(x.shape[0]), "f16[N]").graph.outputs[0].dtype.name == (
        "FLOAT16"
    )


def test_sizes_are_converted_as_numbers_of_numpy_are(check):
    check(lambda x: x * np.max(x.shape).astype(x.dtype), "f32[N,2]", sizes=SIZES)
    check(jnp.linalg.matrix_rank, "f32[N,3]", sizes=SIZES[:1])
    with pytest.raises(AttributeError):
        jax.export.symbolic_shape("N")[0].astype(np.float32)


def test_copies_of_sizes_are_equal(check):
    def fn(x):
        size = copy.deepcopy([2 * x.shape[0]])
        assert size == [2 * x.shape[0]]
        return x.reshape(size)

    check(fn, "f32[N,2]", sizes=SIZES)
    size = jax.export.symbolic_shape("N")[0]
    assert str(copy.deepcopy(size)) == "N"


def test_attention_within_a_window(check):
    def fn(q):
        return jax.nn.dot_product_attention(q, q, q, is_causal=True, local_window_size=(2, 0))

    check(fn, "f32[2,N,2,4]", sizes=SIZES)


def test_indices_that_are_sizes(check):
    def fn(x, y):
        n, m = x.shape[0], y.shape[0]
        read = x[n // 2], x[-n], x[..., n - 1, 0], x[n // 2, jnp.array([0, 1])], x[n // 2 :, 1]
        changed = x.at[n // 2].set(5.0), x.at[n - 1, 1].add(2.0), x.at[m].multiply(3.0)
        return read, changed, x[m], x[n], x[-2 * n], x.at[2 * n].get(mode="fill", fill_value=7.0)

    check(fn, "f32[N,2]", "f32[M]", sizes=[{"N": n, "M": m} for n, m in ((1, 1), (5, 2), (3, 6))])


def test_a_range_over_a_symbolic_size_is_refused():
    with pytest.raises(SmeltError, match="E112"):
        trace(lambda x: x * sum(range(x.shape[0])), "f32[N]")


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_may_have_nothing_to_scan(check, reverse):
    def fn(x):
        step = lambda carry, row: (carry + row, carry * row)  # noqa: E731 - as people write it
        return jax.lax.scan(step, x[0], x[1:], reverse=reverse)

    check(fn, "f32[N,3]", sizes=SIZES)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: jnp.arange(x.shape[0] * 0.1),
        lambda x: jnp.arange(0.0, x.shape[0], 1 / 3),
        lambda x: jnp.arange(1.0, x.shape[0] / 3),
    ],
)
def test_a_range_of_floats_up_to_a_size_says_how_to_count(fn):
    with pytest.raises(UsageError) as caught:
        trace(fn, "f32[N,3]")
    assert caught.value.code == "E113"
    assert caught.value.fix.startswith("give exact bounds")
    assert "jnp.arange(n + 1) * 1.0" in caught.value.fix


def test_arange_of_symbolic_sizes_converts():
    def counted(x):
        n = x.shape[0]
        return jnp.arange(n + 1) * 1.0, jnp.arange(2 * n) * 0.5

    run = smelt.compile(counted, "f32[N,3]")
    for n in (1, 4):
        whole, halves = run(np.zeros((n, 3), np.float32))
        np.testing.assert_array_equal(whole, np.arange(n + 1.0))
        np.testing.assert_array_equal(halves, np.arange(0.0, n, 0.5))


def test_the_error_of_a_range_at_known_sizes_has_no_advice_about_sizes():
    with pytest.raises(UsageError) as caught:
        trace(lambda x: jnp.arange(x[0, 0]), "f32[2,3]")
    assert "in integers" not in caught.value.fix
