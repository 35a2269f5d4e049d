"""A scatter of one window at a known place becomes joined slices, except for few or long rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt

X = np.random.default_rng(0).standard_normal((70, 80)).astype(np.float32)
X[3, 4], X[5, 6], X[0, 0] = np.nan, -0.0, np.inf
Y = np.random.default_rng(1).standard_normal((68, 78)).astype(np.float32)

JOINED = {
    "a block, added to": lambda x, y: x.at[1:-1, 1:-1].add(y),
    "a block, set": lambda x, y: x.at[1:-1, 1:-1].set(y),
    "a block, multiplied": lambda x, y: x.at[1:-1, 1:-1].multiply(y),
    "largest elements": lambda x, y: x.at[1:-1, 1:-1].max(y),
    "a corner": lambda x, y: x.at[:68, 2:].set(y),
    "a column": lambda x, y: x.at[:, 2].set(y[0, :70]),
    "columns": lambda x, y: x.at[:, 1:4].set(0.0),
}
SCATTERED = {
    "a row": lambda x, y: x.at[3].set(0.0),
    "a part of a column": lambda x, y: x.at[1:69, -1].add(y[:, 0]),
    "few elements": lambda x, y: x.at[3, 4].add(1.0),
    "rows": lambda x, y: x.at[1:60].add(1.0),
    "places out of bounds": lambda x, y: x.at[70].set(1.0),
}


def operators(fn, *specs: str) -> set[str]:
    return {node.op_type for node in smelt.optimize(smelt.trace(fn, *specs)).graph}


@pytest.mark.parametrize("fn", JOINED.values(), ids=JOINED)
def test_slices_joined(check, fn) -> None:
    check(fn, "f32[70,80]", "f32[68,78]", inputs=[[X, Y]], rtol=0)
    assert "ScatterND" not in operators(fn, "f32[70,80]", "f32[68,78]")


@pytest.mark.parametrize("fn", SCATTERED.values(), ids=SCATTERED)
def test_rows_placed(check, fn) -> None:
    check(fn, "f32[70,80]", "f32[68,78]", inputs=[[X, Y]], rtol=0)


def test_windows_known_to_be_in_bounds_are_not_checked() -> None:
    fn = SCATTERED["few elements"]
    assert operators(fn, "f32[70,80]", "f32[68,78]") == {"ScatterND"}


@pytest.mark.parametrize("dtype", ["f16", "i32", "u8", "bool"])
def test_other_types(check, dtype: str) -> None:
    check(lambda x, y: x.at[:, 2].set(y), f"{dtype}[70,9]", f"{dtype}[70]")
    check(lambda x, y: x.at[:, 2].max(y), f"{dtype}[70,9]", f"{dtype}[70]")


def test_a_dim_of_open_size_that_the_window_covers(check) -> None:
    check(lambda x, y: x.at[:, 1].set(y), "f32[B,4]", "f32[B]")
    check(lambda x, y: x.at[:, 1:3, :].add(y), "f32[B,4,3]", "f32[B,2,3]")


def test_gradients(check) -> None:
    loss = lambda x, y: (x.at[:, 2].set(y) ** 2).sum()  # noqa: E731
    check(jax.grad(loss, (0, 1)), "f32[70,9]", "f32[70]")


def test_nothing_is_set(check) -> None:
    check(lambda x: x.at[:, 3:3].set(1.0) + jnp.ones(()), "f32[70,9]")
