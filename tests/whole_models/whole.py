"""What a whole model is: a function as users write it, and what to run it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from flax import nnx

Sizes: TypeAlias = Mapping[str, int]
Inputs: TypeAlias = Callable[[np.random.Generator, Sizes], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class WholeModel:
    """``function`` of arguments like ``specs``, run at each of ``sizes``.

    ``inputs`` draws the arguments for a size where numbers of any kind would not do, and
    ``constraints`` bound the symbols of ``specs``. ``compiled`` is False for what ``jax.jit`` does
    not take, such as a module that counts what it draws.
    """

    function: Callable[..., Any]
    specs: tuple[Any, ...]
    sizes: tuple[Sizes, ...] = ({"B": 1}, {"B": 3})
    constraints: tuple[str, ...] = ()
    x64: bool = False
    inputs: Inputs | None = None
    compiled: bool = True


def filled(shapes: Any, seed: int = 0) -> Any:
    """Arrays of ``shapes`` as training may leave them: no scale is 1, no bias 0, none negative.

    Drawing them here takes no compiled initializer for each shape, which is most of the time that
    making a model takes.
    """
    rng = np.random.default_rng(seed)

    def drawn(shape: Any) -> Any:
        if jnp.issubdtype(shape.dtype, jax.dtypes.prng_key):
            return jax.random.key(seed)
        if not jnp.issubdtype(shape.dtype, jnp.floating):
            return jnp.zeros(shape.shape, shape.dtype)
        if len(shape.shape) < 2:
            values = rng.uniform(0.5, 1.0, shape.shape)
        else:
            values = rng.standard_normal(shape.shape) / np.sqrt(np.prod(shape.shape[:-1]))
        return jax.device_put(np.asarray(values, shape.dtype))

    return jax.tree.map(lambda v: drawn(v) if hasattr(v, "shape") else v, shapes)


def linen_variables(model: nn.Module, *shape: int) -> Any:
    """Variables of a linen module for an input of ``shape``."""
    example = jax.ShapeDtypeStruct(shape, jnp.float32)
    return filled(jax.eval_shape(model.init, jax.random.key(0), example))


def nnx_module(make: Callable[[nnx.Rngs], nnx.Module]) -> Any:
    """The module that ``make`` makes, with variables of our own."""
    graph, state = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))
    return nnx.merge(graph, filled(state))


def equinox_module(make: Callable[[jax.Array], eqx.Module]) -> Any:
    """The module that ``make`` makes of a key, with arrays of our own."""
    return filled(eqx.filter_eval_shape(make, jax.random.key(0)))
