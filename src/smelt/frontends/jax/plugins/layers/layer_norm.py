"""Layer normalization of flax nnx and equinox: one equation, one operator.

The layers' own arithmetic is twenty equations, which passes would have to match again. JAX still
traces that arithmetic for derivatives and for calls with a type other than float32, a mask, an
axis other than the last, or statistics across devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from smelt.frontends.jax import compat
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.patching.bindings import Binding, Call, binds, in_front
from smelt.frontends.jax.patching.library_functions import EQUINOX_LAYER_NORM, NNX_LAYER_NORM
from smelt.frontends.jax.registry import lowers

LAST = (-1, (-1,))


@lowers("flax.layer_norm", "equinox.layer_norm")
def layer_norm(
    cx: Lowering,
    x: ir.Value,
    scale: ir.Value,
    *bias: ir.Value,
    epsilon: float,
    fast: bool,
) -> ir.Value:
    """Lower to LayerNormalization over the dims of ``scale``; ``fast`` only affects rounding."""
    axis = -len(cx.avals_in[1].shape)
    return cx.op("LayerNormalization", x, scale, *bias, axis=axis, epsilon=epsilon)


def like_x(x: compat.Aval, *operands: compat.Aval, **params: Any) -> compat.Aval:
    """Return the type of ``x`` as the result type."""
    return compat.ShapedArray(x.shape, x.dtype)


def with_rank_of(array: jax.Array, x: jax.Array) -> jax.Array:
    """Return ``array`` with leading dims of 1 up to the rank of ``x``.

    JAX broadcasts different ranks by itself, except under ``jax_numpy_rank_promotion="raise"``.
    """
    return array.reshape((1,) * (x.ndim - array.ndim) + array.shape)


def flax_statistics(x: jax.Array, axes: tuple[int, ...], fast: bool) -> tuple[Any, Any]:
    """Return mean and variance over ``axes`` as flax computes them for float32.

    ``fast`` is flax's ``use_fast_variance``: the mean of squares minus the square of the mean.
    """
    mean = x.mean(axes)
    if fast:
        return mean, jnp.maximum(0.0, lax.square(x).mean(axes) - lax.square(mean))
    return mean, lax.square(x - jnp.expand_dims(mean, axes)).mean(axes)


def _flax_reference(
    x: jax.Array, scale: jax.Array, *bias: jax.Array, epsilon: float, fast: bool
) -> Any:
    """Return the normalization over the last dim as flax computes it."""
    mean, variance = flax_statistics(x, (-1,), fast)
    y = x - jnp.expand_dims(mean, -1)
    y *= lax.rsqrt(jnp.expand_dims(variance, -1) + epsilon) * with_rank_of(scale, x)
    return y + with_rank_of(bias[0], x) if bias else y


def _equinox_reference(
    x: jax.Array, scale: jax.Array, *bias: jax.Array, epsilon: float, fast: bool
) -> Any:
    """Return the normalization over the dims of ``scale`` as equinox computes it."""
    axes = tuple(range(-scale.ndim, 0))
    mean = jnp.mean(x, axes, keepdims=True)
    variance = jnp.maximum(0.0, jnp.var(x, axes, keepdims=True))
    out = with_rank_of(scale, x) * ((x - mean) * lax.rsqrt(variance + epsilon))
    return out + with_rank_of(bias[0], x) if bias else out


def _flax_arguments(layer: Any, x: Any, **others: Any) -> Call | None:
    """Return the primitive's arguments for a flax layer; None if JAX must trace the call."""
    last = layer.reduction_axes in LAST and layer.feature_axes in LAST
    return flax_arguments(layer, x) if last and are_absent(others) else None


def are_absent(others: Mapping[str, Any]) -> bool:
    """True if all further arguments, such as a mask, are None."""
    return all(other is None for other in others.values())


def flax_arguments(layer: Any, x: Any) -> Call | None:
    """Return the primitive's arguments for a flax layer whose parameters have the last dim.

    None if JAX must trace the call as usual.
    """
    from flax.nnx.nn import dtypes

    if layer.axis_name is not None or layer.dtype not in (None, jnp.float32):
        return None
    if layer.promote_dtype is not dtypes.promote_dtype:
        return None
    scale = layer.scale[...] if layer.scale else None
    bias = layer.bias[...] if layer.bias else None
    return _arguments(
        x, scale, bias, np.shape(x)[-1:], layer.epsilon, bool(layer.use_fast_variance)
    )


def _equinox_arguments(
    layer: Any, x: Any, *state: Any, key: Any = None, **others: Any
) -> Call | None:
    """Return the primitive's arguments for an equinox layer, None if JAX must trace it as usual."""
    if state or others or layer.shape != np.shape(x):
        return None
    scale = layer.weight if layer.use_weight else None
    bias = layer.bias if layer.use_bias else None
    return _arguments(x, scale, bias, layer.shape, layer.eps, fast=False)


def _arguments(
    x: Any, scale: Any, bias: Any, shape: tuple[compat.Dim, ...], epsilon: Any, fast: bool
) -> Call | None:
    """Return operands and parameters for a layer whose scale and bias have the shape ``shape``.

    ``shape`` is the last dims of ``x``. None for unknown sizes, types other than float32, and an
    unusual epsilon.
    """
    if not shape or not all(isinstance(dim, int) and dim > 0 for dim in shape):
        return None
    scale = np.ones(shape, np.float32) if scale is None else scale
    operands = (x, scale) if bias is None else (x, scale, bias)
    if not is_usual_epsilon(epsilon):
        return None
    for operand in operands:
        if not isinstance(operand, jax.Array | np.ndarray) or operand.dtype != np.float32:
            return None
    if any(np.shape(operand) != shape for operand in operands[1:]):
        return None
    return operands, {"epsilon": epsilon, "fast": fast}


def is_usual_epsilon(epsilon: Any) -> bool:
    """True for a positive float that float32 can hold."""
    return isinstance(epsilon, float) and bool(0 < np.float32(epsilon) < np.inf)


def batched_first(operands: Sequence[Any], dims: Sequence[int | None]) -> Sequence[Any] | None:
    """Return the operands with the dim of the first one that ``vmap`` maps in front.

    None if another operand is mapped, too: JAX then maps the layer's own code.
    """
    if dims[0] is None or any(dim is not None for dim in dims[1:]):
        return None
    return in_front(operands[0], dims[0]), *operands[1:]


FLAX = Binding(
    NNX_LAYER_NORM.target,
    "flax.layer_norm",
    like_x,
    _flax_arguments,
    _flax_reference,
    batched_first,
    optional=True,
    parameters=NNX_LAYER_NORM.parameters,
)
EQUINOX = Binding(
    EQUINOX_LAYER_NORM.target,
    "equinox.layer_norm",
    like_x,
    _equinox_arguments,
    _equinox_reference,
    batched_first,
    optional=True,
    parameters=EQUINOX_LAYER_NORM.parameters,
)
binds(FLAX)
binds(EQUINOX)
