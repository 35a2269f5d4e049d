"""Loops that write into carried arrays, such as caches of keys and values.

Whatever a loop carries keeps the type that JAX traced, at least its rank, so every contraction in
its body becomes an operator of ONNX, and the model runs wherever it is compiled for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import smelt
from smelt.ir import scope
from smelt.runtime.runner import open_runner

Q, K = "f32[2,4]", "f32[4,4]"


def _fori(body: Callable[..., Any]) -> Callable[..., Any]:
    return lambda q, k: lax.fori_loop(0, 4, lambda i, k: body(i, q, k), k)


def _write(i: Any, q: Any, k: Any) -> Any:
    return lax.dynamic_update_slice(k, (k.sum() * 0.1 + q @ k)[None, 0], (i, 0))


def _while(q: Any, k: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, _write(c[0], q, c[1])), (0, k))


def _scan(q: Any, k: Any) -> Any:
    return lax.scan(lambda k, i: (_write(i, q, k), (q @ k).sum(0)), k, jnp.arange(4))


def _nested(q: Any, k: Any) -> Any:
    inner = lambda i, k: lax.fori_loop(0, 2, lambda j, k: _write(i + j, q, k), k)  # noqa: E731
    return lax.fori_loop(0, 2, inner, k)


def _in_a_branch(q: Any, k: Any) -> Any:
    return lax.cond(k.sum() > -1e9, _fori(_write), lambda q, k: k + 1, q, k)


def _branch_inside(q: Any, k: Any) -> Any:
    def body(i: Any, k: Any) -> Any:
        return lax.cond(i % 2 == 0, lambda k: _write(i, q, k), lambda k: k @ k * 0.1, k)

    return lax.fori_loop(0, 4, body, k)


def _no_row_is_long(q: Any, k: Any) -> Any:
    wide = jnp.tile(k.reshape(1, 16), (2, 512))
    return lax.fori_loop(0, 2, lambda i, c: _shifted(i, q, c), wide)


def _shifted(i: Any, q: Any, c: Any) -> Any:
    part = lax.dynamic_slice(c, (0, i * 7), (2, 4096))
    gram = q @ lax.dynamic_slice(c, (0, i), (2, 4)).T
    return lax.dynamic_update_slice(c, gram @ part * 0.1, (0, i))


STEPS: dict[str, tuple[Callable[..., Any], Sequence[str]]] = {
    "fori": (_fori(_write), (Q, K)),
    "while": (_while, (Q, K)),
    "scan": (_scan, (Q, K)),
    "nested": (_nested, (Q, K)),
    "in a branch": (_in_a_branch, (Q, K)),
    "a branch inside": (_branch_inside, (Q, K)),
    "rows of single elements": (_no_row_is_long, (Q, K)),
    "any trip count": (
        lambda q, k, n: lax.fori_loop(0, n, lambda i, k: _write(i, q, k), k),
        (Q, K, "i32[]"),
    ),
    "carried place": (
        lambda q, k: lax.fori_loop(
            0, 4, lambda _, c: ((c[0] + 3) % 4, _write(c[0], q, c[1])), (jnp.int32(1), k)
        ),
        (Q, K),
    ),
    "scattered": (_fori(lambda i, q, k: k.at[i].set((q @ k)[0] * 0.3)), (Q, K)),
    "scattered into columns": (_fori(lambda i, q, k: k.at[:, i].add((k @ q.T)[:, 0])), (Q, K)),
    "read back": (
        _fori(lambda i, q, k: k * 0.5 + q.T @ lax.dynamic_slice(_write(i, q, k), (i, 0), (2, 4))),
        (Q, K),
    ),
    "a symbolic batch": (
        lambda q, k: lax.fori_loop(
            0,
            3,
            lambda i, k: lax.dynamic_update_slice(
                k, jnp.einsum("bqd,bkd->bqd", q, k) * 0.1, (0, i, 0)
            ),
            k,
        ),
        ("f32[B,1,4]", "f32[B,4,4]"),
    ),
    "a symbolic length": (
        _fori(
            lambda i, q, k: lax.dynamic_update_slice(k, (q @ k.T @ k * 0.1)[:1], (i, jnp.int32(0)))
        ),
        (Q, "f32[S,4]"),
    ),
    "all symbolic": (
        lambda q, k: lax.fori_loop(
            0, 3, lambda i, k: lax.dynamic_update_slice(k, (q @ k.T @ k)[:, :1] * 0.1, (0, i)), k
        ),
        ("f32[S,T]", "f32[S,T]"),
    ),
}


def _arrays(specs: Sequence[str]) -> list[Any]:
    sizes = {"B": 3, "S": 5, "T": 4}
    rng = np.random.default_rng(0)
    arrays: list[Any] = []
    for spec in specs:
        kind, _, dims = spec.rstrip("]").partition("[")
        shape = [sizes.get(dim) or int(dim) for dim in dims.split(",") if dim]
        arrays.append(rng.standard_normal(shape).astype("f4") if kind == "f32" else np.int32(3))
    return arrays


def _assert_run(models: Sequence[Any], fn: Callable[..., Any], arrays: Sequence[Any]) -> None:
    expected = jax.tree.leaves(fn(*map(jax.device_put, arrays)))
    for model in models:
        assert {node.domain for node in scope.nodes(model)} == {""}
        results = open_runner(model, "onnxruntime")(*arrays)
        for ours, theirs in zip(results, expected, strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", STEPS)
def test_carried_values_keep_their_type(name: str) -> None:
    fn, specs = STEPS[name]
    compiled = smelt.compile(fn, *specs, target="onnx").model
    once = smelt.optimize(smelt.trace(fn, *specs))
    _assert_run([compiled, once, smelt.optimize(once)], fn, _arrays(specs))


def _attended(q: Any, keys: Any, values: Any, i: Any) -> Any:
    scores = jnp.einsum("bhd,bhsd->bhs", q, keys) / 2
    seen = jnp.arange(keys.shape[2]) <= i
    return jnp.einsum("bhs,bhsd->bhd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf)), values)


def _step(state: Any, weights: Any, i: Any) -> Any:
    """Run one token through one layer with two heads of size 4; choose the next token greedily."""
    token, keys, values, out = state
    table, wq, wk, wv = weights
    x = table[token]
    q, k, v = ((x @ w).reshape(x.shape[0], 2, 4) for w in (wq, wk, wv))
    keys = lax.dynamic_update_slice(keys, k[:, :, None], (0, 0, i, 0))
    values = lax.dynamic_update_slice(values, v[:, :, None], (0, 0, i, 0))
    y = x + _attended(q, keys, values, i).reshape(x.shape)
    token = jnp.argmax(y @ table.T, axis=-1).astype(jnp.int32)
    out = lax.dynamic_update_slice(out, token[:, None], (0, i))
    return token, keys, values, out


def _decode(steps: int) -> Callable[..., Any]:
    rng = np.random.default_rng(1)
    shapes = (11, 8), (8, 8), (8, 8), (8, 8)
    weights = [jnp.asarray(rng.standard_normal(shape), jnp.float32) for shape in shapes]

    def decode(token: Any, keys: Any, values: Any, out: Any) -> Any:
        state = token, keys, values, out
        return lax.fori_loop(0, steps, lambda i, s: _step(s, weights, i), state)

    return decode


@pytest.mark.parametrize("specs", ["2,2,6,4", "B,2,6,4", "2,2,S,4", "B,2,S,4"])
def test_greedy_decoding_with_a_cache(specs: str) -> None:
    batch, _, length, _ = specs.split(",")
    cache = f"f32[{specs}]"
    given = f"i32[{batch}]", cache, cache, f"i32[{batch},{length}]"
    arrays = [
        np.array([3, 9], np.int32),
        *np.zeros((2, 2, 2, 6, 4), np.float32),
        np.zeros((2, 6), np.int32),
    ]
    decode = _decode(5)
    compiled = smelt.compile(decode, *given, target="onnx").model
    twice = smelt.optimize(smelt.optimize(smelt.trace(decode, *given)))
    _assert_run([compiled, twice], decode, arrays)


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
def test_one_step_with_a_cache_on_every_target(target: str) -> None:
    weights = [jnp.asarray(w, jnp.float32) for w in np.random.default_rng(1).normal(size=(4, 8, 8))]

    def step(token: Any, keys: Any, values: Any, out: Any, i: Any) -> Any:
        return _step((token, keys, values, out), weights, i)

    cache = "f32[2,2,6,4]"
    artifact = smelt.compile(step, "i32[2]", cache, cache, "i32[2,6]", "i32[]", target=target)
    rng = np.random.default_rng(2)
    for place in (0, 3, 5, 9, -2):
        caches = rng.standard_normal((2, 2, 2, 6, 4)).astype(np.float32)
        arrays = [np.array([3, 7], np.int32), *caches, np.zeros((2, 6), np.int32), np.int32(place)]
        for ours, theirs in zip(artifact(*arrays), step(*map(jax.device_put, arrays)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


WINDOWS = {
    "a row": lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 8)),
    "rows": lambda x, i: lax.dynamic_slice(x, (i, 0), (3, 8)) @ x.T,
    "a block": lambda x, i: lax.dynamic_slice(x, (i, i), (3, 4)),
    "columns": lambda x, i: lax.dynamic_slice(x, (0, i), (5, 2)),
    "an update in a block": lambda x, i: lax.dynamic_update_slice(x, x[:2, :3] * 2, (i, 1)),
    "an update of columns": lambda x, i: lax.dynamic_update_slice(x, x[:, :3] * 2, (0, i)),
    "integers": lambda x, i: lax.dynamic_update_slice(
        x.astype(jnp.int8), jnp.ones((2, 8), jnp.int8), (i, 0)
    ),
    "booleans": lambda x, i: lax.dynamic_update_slice(x > 0, jnp.ones((2, 8), bool), (i, 0)),
    "half floats": lambda x, i: lax.dynamic_slice(x.astype(jnp.float16), (i, 0), (2, 8)),
}


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_at_a_computed_place_on_every_target(name: str, target: str) -> None:
    fn = WINDOWS[name]
    artifact = smelt.compile(fn, "f32[5,8]", "i32[]", target=target)
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    for place in (0, 2, 4, 7, -1, -9, 2**31 - 1, -(2**31)):
        (got,) = artifact(x, np.int32(place))
        expected = fn(jax.device_put(x), jnp.int32(place))
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
