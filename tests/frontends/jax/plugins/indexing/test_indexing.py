"""Gather, scatter and slices that begin at a computed place."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

import smelt
from smelt.runtime.runner import open_runner

OUT = np.array([0, 4, -1, -5, 7, 2, -9], np.int32)
MODES = ["fill", "clip", "wrap"]
X = np.arange(30, dtype=np.float32).reshape(5, 6) - 7


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [0, 1])
def test_take(check, mode, axis):
    fn = lambda x, i: jnp.take(x, i, axis=axis, mode=mode)  # noqa: E731
    check(fn, "f32[5,6]", "i32[7]", inputs=[[X, OUT]], rtol=0)
    check(fn, "i32[5,6]", "i32[7]", inputs=[[X, OUT]])


def test_embedding_lookup_in_any_batch(check):
    check(lambda table, i: table[i], "f32[10,4]", "i32[B,S]")
    check(lambda table, i: jnp.take(table, i, axis=0), "f32[10,4]", "i32[B,S]")
    check(lambda x, i: jnp.take(x, i, axis=1), "f32[B,10,4]", "i32[3]")


def test_an_embedding_mapped_over_a_batch_is_one_gather(check):
    """Each window is a whole row, so its start within the row has no effect."""
    table = jnp.arange(40.0).reshape(10, 4)
    row = lambda i: lax.dynamic_index_in_dim(table, i, keepdims=False)  # noqa: E731
    for fn in (row, lambda i: lax.dynamic_slice(table, (i, i), (1, 4))):
        model = smelt.optimize(check(jax.vmap(jax.vmap(fn)), "i32[B,S]"))
        ops = {node.op_type for node in model.graph}
        assert "Gather" in ops
        assert not ops & {"GatherND", "Concat", "Expand"}
    out = [[np.array([[3, -4, 12], [-1, 0, 9]], np.int32)]]
    check(jax.vmap(jax.vmap(row)), "i32[2,3]", inputs=out, rtol=0)


def test_windows_over_a_whole_dim_begin_at_0(check):
    """The clipped start of such a dim is 0 for each index; the mode that fills still checks the index."""

    def fn(mode):
        numbers = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
        return lambda x, i: lax.gather(x, i, numbers, (2, 6), mode=mode)

    inside = np.array([[0, 0], [3, 5], [-2, 1], [9, -9]], np.int32)
    for mode in ("clip", "fill"):
        check(fn(mode), "f32[5,6]", "i32[4,2]", inputs=[[X, inside]], rtol=0)
    numbers = lax.GatherDimensionNumbers((1, 2), (), (0, 1))
    whole = lambda x, i: lax.gather(x, i, numbers, (5, 6), mode="clip")  # noqa: E731
    check(whole, "f32[5,6]", "i32[4,2]", inputs=[[X, inside]], rtol=0)


INDEXED = {
    "two axes": lambda x, i: x[i, (i + 1) % 6],
    "second axis": lambda x, i: x[:, i],
    "a row": lambda x, i: x[i[0]],
    "an element": lambda x, i: x[i[0], i[1]],
    "rows in a matrix": lambda x, i: x[i.reshape(-1, 1), jnp.arange(3)],
    "windows": lambda x, i: jax.vmap(lambda j: lax.dynamic_slice(x, (j, j), (2, 3)))(i),
    "window in one axis": lambda x, i: jax.vmap(lambda j: lax.dynamic_slice(x, (j, 0), (2, 6)))(i),
    "batched": lambda x, i: jax.vmap(lambda row, j: row[j])(x[: i.shape[0]], i[:5]),
    "along axis": lambda x, i: jnp.take_along_axis(x, i[:5, None] % 6, axis=1),
    "along batched axes": lambda x, i: jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1),
    "mask": lambda x, i: jnp.where(x[i[:5] % 5] > 0, x, 0),
    "static mixed": lambda x, i: x[1, i],
    "boolean of rows": lambda x, i: x[jnp.array([3, 1])],
}


@pytest.mark.parametrize("fn", INDEXED.values(), ids=INDEXED.keys())
def test_indexing(check, fn):
    check(fn, "f32[5,6]", "i32[7]", inputs=[[X, OUT], [X, np.abs(OUT) % 4]], rtol=0)


def test_gradients_of_places_out_of_bounds_are_dropped(check):
    """JAX promises indices in bounds, and its runtime drops the others."""
    factors = jnp.arange(1.0, 5.0)[:, None]
    gradient = jax.grad(lambda x, i: (x[i] * factors).sum())
    check(gradient, "f32[3,2]", "i32[4]", inputs=[[np.ones((3, 2)), [0, 3, -5, 2]]])
    check(gradient, "f32[N,2]", "i32[4]", inputs=[[np.ones((4, 2)), [9, -1, -9, 2]]])


@pytest.mark.parametrize("fn", ["set", "add", "subtract", "multiply", "min", "max"])
@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
def test_scatter_of_rows(check, fn, mode):
    index = np.array([0, 4, 7, -1, 2], np.int32)
    index = index % 5 if mode == "promise_in_bounds" else index
    if fn == "set" and mode == "clip":
        index = index[:2]  # Otherwise two rows race for one place.
    update = lambda x, i, u: getattr(x.at[i], fn)(u, mode=mode)  # noqa: E731
    rows = np.random.default_rng(0).standard_normal((index.size, 6)).astype(np.float32)
    check(
        update,
        "f32[5,6]",
        f"i32[{index.size}]",
        f"f32[{index.size},6]",
        inputs=[[X, index, rows]],
        rtol=1e-6,
    )


SCATTERED = {
    "a row": lambda x, i, u: x.at[1].set(u[0]),
    "a column": lambda x, i, u: x.at[:, 2].add(u[0, :5]),
    "a block": lambda x, i, u: x.at[1:3, 2:4].set(u[:2, :2]),
    "points": lambda x, i, u: x.at[i, (i + 1) % 6].add(u[:, 0]),
    "points set": lambda x, i, u: x.at[i, jnp.arange(5)].set(u[:, 0]),
    "one element": lambda x, i, u: x.at[i[0], i[1]].set(2.0),
    "batched": lambda x, i, u: jax.vmap(lambda r, j, v: r.at[j].add(v))(x, i, u[:, 0]),
    "batched windows": lambda x, i, u: jax.vmap(
        lambda r, j, v: lax.dynamic_update_slice(r, v, (j,))
    )(x, i, u[:, :2]),
    "strided": lambda x, i, u: x.at[::2].set(u[:3]),
    "scalar everywhere": lambda x, i, u: x.at[:].set(3.0),
    "scalar in rows": lambda x, i, u: x.at[i].set(0.0),
}


@pytest.mark.parametrize("fn", SCATTERED.values(), ids=SCATTERED.keys())
def test_scattering(check, fn):
    rng = np.random.default_rng(1)
    inputs = [
        [X, np.array(i, np.int32), rng.standard_normal((5, 6))]
        for i in ([0, 4, 2, 1, 3], [3, 9, -1, -7, 0])
    ]
    check(fn, "f32[5,6]", "i32[5]", "f32[5,6]", inputs=inputs, rtol=1e-6)


def test_scattered_extremes_propagate_nan(check):
    fn = lambda x, i, u: (x.at[i].max(u), x.at[i].min(u))  # noqa: E731
    x, updates = [np.nan, 1, 2, np.inf, 4], [5, np.nan, -np.inf, 3]
    check(fn, "f32[5]", "i32[4]", "f32[4]", inputs=[[x, [0, 1, 3, 1], updates]])


@pytest.mark.parametrize("dtype", ["f16", "i16", "u8"])
@pytest.mark.parametrize("how", sampled(["set", "add", "multiply", "min", "max"], 2))
def test_scatters_narrow_types(check, dtype, how):
    fn = lambda x, i, u: getattr(x.at[i], how)(u)  # noqa: E731
    inputs = [[[1, 2, 3, 4, 5], [0, 3, 3, 9], [5, 2, 4, 3]]]
    inputs = inputs if how != "set" else [[[1, 2, 3, 4, 5], [0, 3, 2, 9], [5, 2, 4, 3]]]
    check(fn, f"{dtype}[5]", "i32[4]", f"{dtype}[4]", inputs=inputs, rtol=1e-2)


@pytest.mark.parametrize("unique", [False, True])
def test_scatter_of_a_function_counts_how_often_an_element_is_named(check, unique):
    places = [[3, 0, 5], [2, 1, 0], [-1, 9, 3]] + ([] if unique else [[2, 2, 2], [0, 5, 0]])
    fn = lambda x, i: x.at[i].apply(lambda v: 2 * v + 1, unique_indices=unique)  # noqa: E731
    x = np.arange(6.0)
    check(fn, "f32[6]", "i32[3]", inputs=[[x, i] for i in places])
    rows = np.arange(12.0).reshape(6, 2)
    check(fn, "f32[6,2]", "i32[3]", inputs=[[rows, i] for i in places])


def test_scatter_in_a_symbolic_batch(check):
    check(lambda x, v: x.at[:, 1].set(v), "f32[B,4]", "f32[B]")
    check(lambda x, i, v: x.at[jnp.arange(x.shape[0]), i].add(v), "f32[B,16]", "i32[B]", "f32[B]")


STARTS = [[X, s, t] for s, t in ((0, 0), (1, 2), (4, 5), (9, 9), (-1, -2), (-9, 0))]


def test_dynamic_slice_clamps(check):
    check(
        lambda x, i, j: lax.dynamic_slice(x, (i, j), (2, 3)),
        "f32[5,6]",
        "i32[]",
        "i32[]",
        inputs=STARTS,
    )
    check(
        lambda x, i, j: lax.dynamic_slice_in_dim(x, i, 2),
        "f32[5,6]",
        "i32[]",
        "i32[]",
        inputs=STARTS,
    )
    check(lambda x, i: lax.dynamic_index_in_dim(x, i, 1, keepdims=False), "f32[B,4]", "i32[]")


def test_dynamic_update_slice_clamps(check):
    def update(x, i, j):
        return lax.dynamic_update_slice(x, -jnp.ones((2, 3)), (i, j))

    check(update, "f32[5,6]", "i32[]", "i32[]", inputs=STARTS)
    check(
        lambda x, i, j: lax.dynamic_update_slice(x, x[:, :2], (i, j)),
        "f32[5,6]",
        "i32[]",
        "i32[]",
        inputs=STARTS,
    )
    check(
        lambda x, i, j: lax.dynamic_update_slice(x, x + 1, (i, j)),
        "f32[5,6]",
        "i32[]",
        "i32[]",
        inputs=STARTS,
    )


def test_key_value_cache_in_a_symbolic_batch(check):
    check(
        lambda cache, new, i: lax.dynamic_update_slice(cache, new, (0, i, 0)),
        "f32[B,8,4]",
        "f32[B,1,4]",
        "i32[]",
    )


SYMBOLIC_WINDOWS = {
    "set": lambda x: x.at[1:].set(x[:-1] * 2),
    "add": lambda x: x.at[:-1].add(x[1:]),
    "max": lambda x: x.at[1:].max(-x[1:]),
    "two dims": lambda x: x.at[1:, :-1].set(x[:-1, 1:]),
    "beside a row": lambda x: x.at[1:, 2].set(x[1:, 0]),
    "many": lambda x: jax.vmap(lambda i, u: x.at[i, 1:].set(u))(jnp.array([0, 9]), x[:2, 1:]),
}


@pytest.mark.parametrize("name", SYMBOLIC_WINDOWS)
def test_scatter_of_windows_whose_size_is_a_symbol(check, name):
    spec = "f32[5,B]" if name == "many" else "f32[B,4]"
    check(SYMBOLIC_WINDOWS[name], spec, rtol=0)


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_scatter_of_a_window_that_may_be_empty(rows):
    model = smelt.trace(lambda x: x.at[1:].set(x[:-1] * 2), "f32[B,3]")
    x = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3)
    (got,) = open_runner(model, "onnxruntime")(x)
    np.testing.assert_array_equal(got, np.concatenate([x[:1], x[:-1] * 2]))


def test_gather_of_windows_whose_size_is_a_symbol(check):
    pick = lambda x, i: jax.vmap(lambda j: lax.dynamic_slice(x, (j,), (x.shape[0] - 1,)))(i)  # noqa: E731
    check(pick, "f32[B]", "i32[3]", inputs=[[np.arange(5, dtype=np.float32), np.int32([0, 1, 9])]])
