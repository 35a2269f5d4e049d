"""Normalizations of flax linen, lowered like those of flax nnx.

A linen layer creates or reads its parameters inside the call, so the whole method is replaced.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from smelt.frontends.jax.patching.bindings import Binding
from smelt.frontends.jax.patching.library_functions import LINEN_GROUP_NORM, LINEN_LAYER_NORM
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function
from smelt.frontends.jax.plugins.layers import group_norm, layer_norm
from smelt.frontends.jax.plugins.layers.batch_norm import has_vector
from smelt.frontends.jax.plugins.layers.layer_norm import LAST, are_absent, is_usual_epsilon

Read: TypeAlias = Callable[[Any, Any], dict[str, Any] | None]
"""``read(layer, x)`` returns the parameters of the primitive.

None if JAX must trace the call as usual.
"""


def _layer_norm_parameters(layer: Any, x: Any) -> dict[str, Any] | None:
    """Return ``{}``, no further parameters; None unless the layer normalizes over the last dim."""
    return {} if layer.reduction_axes in LAST and layer.feature_axes in LAST else None


def _group_norm_parameters(layer: Any, x: Any) -> dict[str, Any] | None:
    """Return the number of groups as a parameter.

    None for reduction over chosen axes, and if the groups do not divide the channels.
    """
    if layer.reduction_axes is not None or x.ndim < 2:
        return None
    count, size, channels = layer.num_groups, layer.group_size, x.shape[-1]
    has_one_of_both = (count is None) != (size is None)
    if not has_one_of_both or channels == 0 or channels % (count or size):
        return None
    return {"groups": int(count or channels // size)}


def _replacement_of(binding: Binding, read: Read) -> Callable[[Function], Function]:
    """Return a function from a layer's ``__call__`` to a method that binds the primitive.

    ``binding`` names the primitive; ``read`` returns its parameters.
    """

    def replacement(original: Function) -> Function:
        """Return the replacement of the method ``original``."""
        from flax.linen import module

        bind = binding.primitive_of(original).bind
        unwrapped = inspect.unwrap(original)

        @functools.wraps(unwrapped)
        def call(layer: Any, x: Any, **others: Any) -> Any:
            """Bind the primitive if the operator covers the call, else call the method itself."""
            is_covered = are_absent(others) and _is_usual(layer, x)
            params = read(layer, x) if is_covered else None
            if params is None:
                return unwrapped(layer, x, **others)
            shape = list(x.shape[-1:])
            scale = np.ones(shape, np.float32)
            if layer.use_scale:
                scale = layer.param("scale", layer.scale_init, shape, layer.param_dtype)
            operands = [x, scale]
            if layer.use_bias:
                operands.append(layer.param("bias", layer.bias_init, shape, layer.param_dtype))
            fast = bool(layer.use_fast_variance)
            return bind(*operands, epsilon=layer.epsilon, fast=fast, **params)

        wrapped: Function = module.wrap_method_once(call)
        return wrapped

    return replacement


def _is_usual(layer: Any, x: Any) -> bool:
    """True if the primitive computes the layer: float32 throughout, and parameters that exist.

    Statistics across devices (``axis_name``) and sizes that are not numbers are excluded.
    """
    if not isinstance(x, jax.Array) or x.dtype != np.float32 or not x.ndim:
        return False
    size, types = x.shape[-1], (layer.dtype or jnp.float32, layer.param_dtype)
    if layer.axis_name is not None or not layer.force_float32_reductions:
        return False
    if any(np.dtype(dtype) != np.float32 for dtype in types):
        return False
    if not isinstance(size, int) or not size or not is_usual_epsilon(layer.epsilon):
        return False
    names = [name for name in ("scale", "bias") if getattr(layer, f"use_{name}")]
    return all(has_vector(layer, name, size) for name in names)


for function, binding, read in (
    (LINEN_LAYER_NORM, layer_norm.FLAX, _layer_norm_parameters),
    (LINEN_GROUP_NORM, group_norm.FLAX, _group_norm_parameters),
):
    register(
        Patch(
            function.target,
            _replacement_of(binding, read),
            optional=True,
            parameters=function.parameters,
        )
    )
