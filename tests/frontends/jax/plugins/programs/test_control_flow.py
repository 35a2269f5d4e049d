"""Conditions and loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_cond(check):
    fn = lambda p, x: lax.cond(p, lambda x: (x + 1, x.sum()), lambda x: (x * 2, x.max()), x)  # noqa: E731
    check(fn, "bool[]", "f32[2,3]", inputs=[[True, X], [False, X]])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_switch_clamps_its_index(check, count):
    branches = [lambda x, k=k: x * k + k for k in range(count)]
    inputs = [[i, X] for i in (-3, 0, 1, 2, 4, 9)]
    check(lambda i, x: lax.switch(i, branches, x), "i32[]", "f32[2,3]", inputs=inputs)


def test_branches_that_return_what_they_got(check):
    fn = lambda p, x: lax.cond(p, lambda x: (x, x), lambda x: (x, jnp.zeros_like(x)), x)  # noqa: E731
    check(fn, "bool[]", "f32[2,3]", inputs=[[True, X], [False, X]])


def test_while(check):
    def fn(x):
        return lax.while_loop(lambda c: c[1].sum() < 100, lambda c: (c[0] + 1, c[1] * 2), (0, x))

    check(fn, "f32[2,3]", inputs=[[X + 1], [X + 1000]])


def test_while_with_captured_values(check):
    def fn(x, step, limit):
        return lax.while_loop(lambda c: c.max() < limit, lambda c: c + step, x)

    check(fn, "f32[B,3]", "f32[]", "f32[]", inputs=[[X, 3, 50], [X, 1, -1]])


def test_fori(check):
    check(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x), "f32[B,3]")
    check(
        lambda x, n: lax.fori_loop(0, n, lambda i, c: c + i, x),
        "f32[B,3]",
        "i32[]",
        inputs=[[X, 4], [X, 0]],
    )


SCANS = {
    "sum": lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x),
    "no carry": lambda x: lax.scan(lambda c, y: (c, y * 2), None, x),
    "no results": lambda x: lax.scan(lambda c, y: (c + y, None), x[0], x),
    "several": lambda x: lax.scan(
        lambda c, y: ((c[0] + y[0], c[1]), (y[1], c[1])), (x[0], x[1]), (x, x * 2)
    ),
    "counting": lambda x: lax.scan(lambda c, _: (c * 2, c.sum()), x, None, length=4),
    "with constants": lambda x: lax.scan(lambda c, y: (c @ (x.T @ x) * 0.1, y + c), x[0], x),
    "nested": lambda x: lax.scan(
        lambda c, y: (lax.scan(lambda d, z: (d + z, d), c, x)[0] * 0.1, y), x[0], x
    ),
    "empty": lambda x: lax.scan(lambda c, y: (c + 1, c), x, None, length=0),
    "same result twice": lambda x: lax.scan(lambda c, y: (y, (y, y)), x[0], x),
}


@pytest.mark.parametrize("fn", SCANS.values(), ids=SCANS.keys())
def test_scan(check, fn):
    check(fn, "f32[4,3]", rtol=1e-4)


def test_scan_backwards(check):
    check(lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c), x[0], x, reverse=True), "f32[4,3]")
    check(lambda x: lax.scan(lambda c, _: (c + 1, c), x, None, length=3, reverse=True), "f32[2]")


def test_scan_over_a_symbolic_length(check):
    check(lambda x: lax.scan(lambda c, y: (c + y, c), x[0], x), "f32[S,3]")
    check(lambda x: lax.scan(lambda c, y: (c + y @ x.T, c), jnp.zeros(x.shape[0]), x), "f32[S,3]")


def test_sizes_are_computed_once_for_all_subgraphs(check):
    def fn(x):
        return lax.fori_loop(0, 3, lambda i, c: c + jnp.ones((x.shape[0], 2)).sum(), x.sum())

    check(fn, "f32[B]")


def test_map_and_associative_scan(check):
    check(lambda x: lax.map(lambda row: row @ row, x), "f32[4,3]", rtol=1e-4)
    check(lambda x: lax.associative_scan(jnp.add, x), "f32[7,3]", rtol=1e-4)


def test_calls_are_inlined_and_named():
    from smelt.frontends.jax import trace
    from smelt.ir.provenance import origin_of

    @jax.jit
    def squash(x):
        return jnp.tanh(x)

    model = trace(jax.checkpoint(squash), "f32[3]")
    (node,) = model.graph
    assert node.op_type == "Tanh"
    assert "test_control_flow.py" in str(origin_of(node))
    assert "squash" in str(origin_of(node))


def test_rows_of_a_batch_stop_by_themselves(check):
    def one(x, limit):
        return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] * 2, c[1] + 1), (x, x * 0))

    limits = np.array([[1, 9, -5, 100, 3], [0.5, 0.5, 0.5, 0.5, 0.5]], np.float32)
    for limit in limits:
        check(jax.vmap(one), "f32[5]", "f32[5]", inputs=[[np.ones(5), limit]])
    check(jax.vmap(lambda x: one(x, 9.0)), "f32[B]", inputs=[[np.ones(0)], [[1.0, 3.0, 40.0]]])
    inner = lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2, x)  # noqa: E731
    check(jax.vmap(inner), "f32[2,3]", inputs=[[X + 1]])


def test_a_choice_of_one_value_twice(check):
    check(lambda p, x: jnp.where(p, x[0], x[0]), "bool[4]", "f32[3]")
