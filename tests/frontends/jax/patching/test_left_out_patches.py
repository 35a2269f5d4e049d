"""smelt skips a patch whose library function has changed; the results stay the same."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from sampling import sampled

from smelt.compiler import optimize
from smelt.errors import UsageError
from smelt.frontends.jax import registry, trace
from smelt.frontends.jax.patching import library_functions, patches
from smelt.frontends.jax.patching.library_functions import LibraryFunction
from smelt.ir import text
from smelt.runtime.runner import run

Fn = Callable[..., Any]
KEY = jax.random.key(0)


def _linen(layer: nn.Module) -> Fn:
    variables = layer.init(KEY, jnp.ones((2, 5, 4)))
    return lambda x: layer.apply(variables, x)


def _equinox_attention() -> Fn:
    layer = eqx.nn.MultiheadAttention(2, 4, key=KEY)
    return jax.vmap(lambda x: layer(x, x, x))


def _attention(x: Any) -> Any:
    return jax.nn.dot_product_attention(*[x.reshape(2, 5, 2, 2)] * 3)


def _checked(x: Any) -> Any:
    eqx.error_if(1.0, False, "a check of numbers")
    return eqx.error_if(x, False, "a check of arrays")


def _summed(x: Any) -> Any:
    return jax.lax.scan(lambda c, row: (c + row, row), jnp.zeros((5, 4)), x, length=2)


USERS: dict[LibraryFunction, Callable[[], Fn]] = {
    library_functions.SOURCE_INFO: lambda: jax.vmap(jax.vmap(eqx.nn.Linear(4, 3, key=KEY))),
    library_functions.SCAN_LENGTH: lambda: _summed,
    library_functions.SEARCH_SORTED: lambda: lambda x: jnp.searchsorted(x[0, :, 0], x),
    library_functions.INDICES: lambda: lambda x: x[x.shape[0] // 2, 1:, -1],
    library_functions.ARANGE: lambda: lambda x: jnp.arange(x.shape[0]) + x[:, 0, 0],
    library_functions.ARANGE_INSIDE: lambda: lambda x: jax.scipy.fft.dct(x[0, 0]),
    library_functions.DIAG_INDICES: lambda: lambda x: x[jnp.diag_indices(2)],
    library_functions.DIAG_INDICES_INSIDE: lambda: (
        lambda x: jnp.fill_diagonal(x[0, :4], 1.0, inplace=False)
    ),
    library_functions.CONVOLVE: lambda: lambda x: jnp.convolve(x[0, 0], x[0, :, 0]),
    library_functions.CONCRETE: lambda: lambda x: jnp.hanning(x.shape[0]) * x[:, 0, 0],
    library_functions.ATTENTION_RANGE: lambda: (
        lambda x: jax.nn.dot_product_attention(
            *[x[:, :, None]] * 3, is_causal=True, local_window_size=(1, 0)
        )
    ),
    library_functions.FFT_SIZES: lambda: lambda x: jnp.fft.rfft(x, n=6).real,
    library_functions.RFFTFREQ: lambda: lambda x: jnp.fft.rfftfreq(x.shape[0]),
    library_functions.SQUEEZE: lambda: lambda x: x[:1].squeeze(),
    library_functions.SHUFFLE: lambda: lambda x: jax.random.permutation(KEY, x),
    library_functions.ASSOCIATIVE_SCAN: lambda: lambda x: jax.lax.associative_scan(jnp.add, x),
    library_functions.CONSTANT: lambda: jax.vmap(
        lambda v: v / jax.lax.psum(1, "row"), axis_name="row"
    ),
    library_functions.EQUINOX_ROTARY: lambda: jax.vmap(eqx.nn.RotaryPositionalEmbedding(4)),
    library_functions.SOLVE: lambda: (
        lambda x: jnp.linalg.solve(x[:, :2, :2] + 9 * jnp.eye(2), x[:, :2, 2:])
    ),
    library_functions.INDEXER_LEAVES: lambda: lambda x: jax.new_ref(x[0, 0])[jnp.array([1, 3])],
    library_functions.TOEPLITZ: lambda: lambda x: jax.scipy.linalg.toeplitz(x[0, 0]),
    library_functions.DCT_INTERLEAVE: lambda: lambda x: jax.scipy.fft.dct(x[0, :2]),
    library_functions.DCT_DEINTERLEAVE: lambda: lambda x: jax.scipy.fft.idct(x[0, :2]),
    library_functions.SPLIT: lambda: lambda x: jnp.array_split(x, 3, axis=1),
    library_functions.PAD_WRAP: lambda: lambda x: jnp.pad(x, 2, mode="wrap"),
    library_functions.PAD_MIRROR: lambda: lambda x: jnp.pad(x, 2, mode="reflect"),
    library_functions.JAX_ATTENTION: lambda: _attention,
    library_functions.EQUINOX_ERROR_IF: lambda: _checked,
    library_functions.EQUINOX_ERROR_IF_JIT: lambda: _checked,
    library_functions.FLAX_PARAMETER: lambda: _linen(nn.Dense(3)),
    library_functions.NNX_LAYER_NORM: lambda: nnx.LayerNorm(4, rngs=nnx.Rngs(0)),
    library_functions.NNX_GROUP_NORM: lambda: nnx.GroupNorm(4, 2, rngs=nnx.Rngs(0)),
    library_functions.NNX_NORMALIZE: lambda: nnx.BatchNorm(
        4, use_running_average=True, rngs=nnx.Rngs(0)
    ),
    library_functions.LINEN_LAYER_NORM: lambda: _linen(nn.LayerNorm()),
    library_functions.LINEN_GROUP_NORM: lambda: _linen(nn.GroupNorm(2)),
    library_functions.LINEN_NORMALIZE: lambda: _linen(nn.BatchNorm(use_running_average=True)),
    library_functions.EQUINOX_LAYER_NORM: lambda: jax.vmap(jax.vmap(eqx.nn.LayerNorm(4))),
    library_functions.EQUINOX_ATTENTION: _equinox_attention,
    library_functions.NNX_CONV: lambda: nnx.Conv(4, 3, (2,), rngs=nnx.Rngs(0)),
    library_functions.EQUINOX_CONV: lambda: jax.vmap(eqx.nn.Conv1d(5, 3, 2, key=jax.random.key(0))),
}


def _broken(original: Fn) -> Fn:
    """Return a replacement that is defined in a file of smelt, like those of the patches."""
    names: dict[str, Any] = {}
    source = "def replacement(*args, **keywords): return args[0].nothing_is_called_like_this"
    exec(compile(source, patches.__file__, "exec"), names)
    return names["replacement"]


def _cannot_be_made(original: Fn) -> Fn:
    raise ImportError("no such module")


CHANGES: dict[str, Callable[[patches.Patch], patches.Patch]] = {
    "renamed": lambda patch: dataclasses.replace(patch, target=f"{patch.target}_of_old"),
    "moved": lambda patch: dataclasses.replace(
        patch, target=f"{patch.target.partition(':')[0]}_of_old:function", optional=False
    ),
    "other parameters": lambda patch: dataclasses.replace(patch, parameters=("another",)),
    "lacks what is read": lambda patch: dataclasses.replace(patch, replacement=_broken),
    "lacks what is imported": lambda patch: dataclasses.replace(patch, replacement=_cannot_be_made),
}


def test_every_patch_is_in_the_list() -> None:
    registry.RULES.fill()
    known = {function.target: function.parameters for function in library_functions.ALL}
    libraries = ("jax", "flax", "equinox")  # other tests bind functions of modules of their own
    every = patches.PATCHES.items()
    ours = {t: p for t, p in every if t.partition(":")[0].split(".")[0] in libraries}
    assert {target: patch.parameters for target, patch in ours.items()} == known
    assert set(USERS) == set(library_functions.ALL)


@pytest.mark.parametrize(
    "function", sampled(library_functions.ALL, 3), ids=lambda function: function.target
)
def test_a_function_that_changed_is_traced_as_it_is(
    function: LibraryFunction, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After each change one log line names the skipped patch, and the results are right."""
    fn = USERS[function]()
    x = np.random.default_rng(0).standard_normal((2, 5, 4)).astype(np.float32)
    expected = jax.tree.leaves(fn(jax.device_put(x)))
    judged: set[str] = set()
    for change in CHANGES.values():
        changed = change(patches.PATCHES[function.target])
        monkeypatch.setattr(patches, "_skipped", set())
        caplog.clear()
        with patches.PATCHES.refilled(), caplog.at_level(logging.INFO, logger="smelt"):
            owner = patches.PATCHES.owner(function.target)
            patches.PATCHES.add(function.target, changed, owner)
            model = trace(fn, "f32[2,5,4]")
            trace(fn, "f32[2,5,4]")
        told = [record.getMessage() for record in caplog.records]
        assert len([line for line in told if changed.target in line]) == 1, told
        traced = text.canonical(model)
        if traced not in judged:
            judged.add(traced)
            for got, wanted in zip(run(optimize(model), [x]), expected, strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_an_error_of_the_user_stays_one() -> None:
    def initializer(key: Any, shape: Any, dtype: Any) -> Any:
        return key.nothing_is_called_like_this

    layer = nn.Dense(3, kernel_init=initializer)
    variables = nn.Dense(3).init(KEY, jnp.ones((2, 4)))
    with pytest.raises(UsageError, match="nothing_is_called_like_this"):
        trace(lambda x: layer.apply(variables, x), "f32[2,4]")
    assert library_functions.FLAX_PARAMETER.target not in patches._skipped
