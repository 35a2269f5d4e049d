"""A selective state space model, as Mamba: its scan step by step, and in parallel."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from whole_models.whole import WholeModel, filled

Parameters = dict[str, jax.Array]


def scanned(decay: jax.Array, driven: jax.Array) -> jax.Array:
    """Every state of ``h = decay * h + driven`` along axis 0, step by step."""

    def step(h: jax.Array, now: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        h = now[0] * h + now[1]
        return h, h

    return jax.lax.scan(step, jnp.zeros_like(driven[0]), (decay, driven))[1]


def scanned_in_parallel(decay: jax.Array, driven: jax.Array) -> jax.Array:
    """The same by an associative scan."""

    def joined(left: Any, right: Any) -> Any:
        return left[0] * right[0], right[0] * left[1] + right[1]

    return jax.lax.associative_scan(joined, (decay, driven))[1]


def mixed(p: Parameters, x: jax.Array, parallel: bool) -> jax.Array:
    """One block on one sequence of shape (length, width)."""
    states = p["a"].shape[1]
    root = jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    inner, gate = jnp.split((x * root * p["norm"]) @ p["in"], 2, axis=-1)
    taps = jnp.pad(inner, ((p["taps"].shape[0] - 1, 0), (0, 0)))
    length = x.shape[0]
    inner = sum(tap * jax.lax.slice_in_dim(taps, i, i + length) for i, tap in enumerate(p["taps"]))
    inner = jax.nn.silu(inner)
    step, b, c = jnp.split(inner @ p["select"], (1, 1 + states), axis=-1)
    delta = jax.nn.softplus(step * p["step"] + p["bias"])
    decay = jnp.exp(-delta[..., None] * jnp.exp(p["a"]))
    driven = delta[..., None] * b[:, None, :] * inner[..., None]
    h = (scanned_in_parallel if parallel else scanned)(decay, driven)
    y = jnp.einsum("lds,ls->ld", h, c) + p["skip"] * inner
    return x + (y * jax.nn.silu(gate)) @ p["out"]


def _parameters(seed: int, width: int, states: int) -> Parameters:
    inner = 2 * width
    shapes = {
        "norm": (width,),
        "in": (width, 2 * inner),
        "taps": (4, inner),
        "select": (inner, 1 + 2 * states),
        "step": (inner,),
        "bias": (inner,),
        "a": (inner, states),
        "skip": (inner,),
        "out": (inner, width),
    }
    return filled({name: jax.ShapeDtypeStruct(s, jnp.float32) for name, s in shapes.items()}, seed)


def build(
    layers: int = 4, width: int = 8, states: int = 4, length: int = 16, parallel: bool = False
) -> WholeModel:
    """The model mapped over a symbolic batch."""
    layers_of = [_parameters(seed, width, states) for seed in range(layers)]

    def model(x: jax.Array) -> jax.Array:
        for p in layers_of:
            x = mixed(p, x, parallel)
        return x

    return WholeModel(jax.vmap(model), (f"f32[B,{length},{width}]",))
