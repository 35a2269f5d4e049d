"""A decoder like GPT-2 whose keys and values are states: several steps agree with ONNX Runtime."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from targets.coreml.packages import operations

import smelt
from smelt.runtime.runner import open_runner
from smelt.targets.coreml import coreml

F = np.float32
LAYERS, HEADS, HEAD, WORDS, LENGTH, POSITIONS = 2, 2, 8, 31, 6, 16
WIDTH = HEADS * HEAD
CACHES = [f"past_{kind}_{layer}" for layer in range(LAYERS) for kind in ("key", "value")]
ERRORS = {"fp32": 2e-3, "fp16": 1e-2}
"""The largest error relative to the largest logit; the states of Core ML are float16 in any case."""


@cache
def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    sizes = {"words": (WORDS, WIDTH), "places": (POSITIONS, WIDTH)}
    for layer in range(LAYERS):
        sizes |= {f"qkv{layer}": (WIDTH, 3 * WIDTH), f"merge{layer}": (WIDTH, WIDTH)}
        sizes |= {f"up{layer}": (WIDTH, 4 * WIDTH), f"down{layer}": (4 * WIDTH, WIDTH)}
    return {name: (rng.normal(size=size) / 4).astype(F) for name, size in sizes.items()}


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x, layer, past, position, slide):
    """Return the attention of one new position to the cache, and the cache with it."""
    query, *new = jnp.split(x @ weights()[f"qkv{layer}"], 3, axis=-1)
    keys, values = (
        keep(old, heads(row), position, slide) for old, row in zip(past, new, strict=True)
    )
    scores = heads(query) @ keys.swapaxes(-1, -2) / np.sqrt(HEAD).astype(F)
    places = jnp.arange(LENGTH)
    visible = places >= LENGTH - 1 - position if slide else places <= position
    scores = jnp.where(visible, scores, F(-1e4))
    mixed = (jax.nn.softmax(scores) @ values).swapaxes(1, 2).reshape(1, 1, WIDTH)
    return mixed @ weights()[f"merge{layer}"], (keys, values)


def heads(x):
    return x.reshape(1, 1, HEADS, HEAD).swapaxes(1, 2)


def keep(old, row, position, slide):
    """Return the cache with a new row: the last one if it slides, else that of the position."""
    if slide:
        return jnp.concatenate([old[:, :, 1:], row], axis=2)
    return jax.lax.dynamic_update_slice(old, row, (0, 0, position, 0))


def step(slide):
    def decode(token, position, *past):
        x = jnp.asarray(weights()["words"])[token] + jax.lax.dynamic_slice_in_dim(
            jnp.asarray(weights()["places"]), position, 1
        )
        x = x.reshape(1, 1, WIDTH)
        present = []
        for layer in range(LAYERS):
            mixed, kept = attention(
                norm(x), layer, past[2 * layer : 2 * layer + 2], position, slide
            )
            x = x + mixed
            x = x + jax.nn.gelu(norm(x) @ weights()[f"up{layer}"]) @ weights()[f"down{layer}"]
            present += kept
        return (norm(x) @ weights()["words"].T, *present)

    return decode


@cache
def model(slide):
    empty = np.zeros((1, HEADS, LENGTH, HEAD), F)
    traced = smelt.trace(step(slide), np.zeros((1,), np.int32), np.int32(0), *[empty] * len(CACHES))
    return smelt.optimize(traced)


def states_of(traced):
    """Return the option: each input from the third on with the output that replaces it."""
    pairs = zip(traced.graph.inputs[2:], traced.graph.outputs[1:], strict=True)
    return ";".join(f"{before.name}={after.name}" for before, after in pairs)


@pytest.mark.parametrize("precision", ERRORS)
@pytest.mark.parametrize("slide", [False, True], ids=["by position", "sliding"])
def test_steps_with_states_agree(slide, precision):
    traced = model(slide)
    options = {"states": states_of(traced), "ios": 18, "precision": precision}
    artifact = smelt.compile(traced, target=coreml, **options)
    assert [each.type for each in operations(artifact)].count("write_state") == len(CACHES)
    described = artifact.plan.steps.interfaces["main"]
    assert (len(described.inputs), len(described.states)) == (2, len(CACHES))
    source, package = open_runner(traced), artifact.load()
    past = kept = [np.zeros((1, HEADS, LENGTH, HEAD), F)] * len(CACHES)
    tokens = np.random.default_rng(8).integers(0, WORDS, 2 * LENGTH if slide else LENGTH)
    for position, token in enumerate(tokens):
        given = np.array([token], np.int32), np.array(position, np.int32)
        expected, *past = source(*given, *past)
        found, *kept = package(*given, *kept)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error < ERRORS[precision], f"step {position}"
