"""flax batch normalization with constant statistics: one equation, one operator.

flax normalizes in one function, after choosing the statistics of the batch or of the layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import onnx_ir as ir
from jax import lax

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.bindings import Binding, Call, binds
from smelt.frontends.jax.patching.library_functions import LINEN_NORMALIZE, NNX_NORMALIZE
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function
from smelt.frontends.jax.plugins.layers.layer_norm import (
    batched_first,
    is_usual_epsilon,
    like_x,
    with_rank_of,
)
from smelt.frontends.jax.registry import lowers
from smelt.ir.constants import is_constant


@lowers("flax.batch_norm")
def batch_norm(
    cx: Lowering,
    x: ir.Value,
    mean: ir.Value,
    variance: ir.Value,
    scale: ir.Value,
    bias: ir.Value,
    *,
    epsilon: float,
) -> ir.Value | list[Operand]:
    """Lower to BatchNormalization with channels second.

    Statistics that are not constant (of the batch) inline flax's own arithmetic.
    """
    if not (is_constant(mean) and is_constant(variance)):
        return cx.inline_traced(partial(_reference, epsilon=epsilon))
    last = len(cx.avals_in[0].shape) - 1
    channels_second = cx.transpose(x, (0, last, *range(1, last)))
    result = cx.op(
        "BatchNormalization", channels_second, scale, bias, mean, variance, epsilon=epsilon
    )
    return cx.transpose(result, (0, *range(2, last + 1), 1))


def _reference(
    x: jax.Array,
    mean: jax.Array,
    variance: jax.Array,
    scale: jax.Array,
    bias: jax.Array,
    *,
    epsilon: float,
) -> Any:
    """Return the normalization as flax computes it."""
    mean, variance, scale, bias = (with_rank_of(p, x) for p in (mean, variance, scale, bias))
    return (x - mean) * (lax.rsqrt(variance + epsilon) * scale) + bias


def _nnx_arguments(
    x: Any,
    mean: Any,
    var: Any,
    scale: Any,
    bias: Any,
    reduction_axes: Any,
    feature_axes: Any,
    dtype: Any,
    epsilon: Any,
) -> Call | None:
    """Return operands and epsilon of a call that the operator covers, None for any other call."""
    if not _is_covered(x, mean, var, reduction_axes, feature_axes, dtype, epsilon):
        return None
    shape = x.shape[-1:]
    scale = np.ones(shape, np.float32) if scale is None else scale
    bias = np.zeros(shape, np.float32) if bias is None else bias
    if any(np.shape(p) != shape or p.dtype != np.float32 for p in (scale, bias)):
        return None
    return (x, mean, var, scale, bias), {"epsilon": epsilon}


def _is_covered(
    x: Any, mean: Any, var: Any, reduced: Any, features: Any, dtype: Any, epsilon: Any
) -> bool:
    """True if BatchNormalization computes the call.

    It does for float32 ``x`` of rank 2 or more whose statistics are over all dims but the last.
    """
    if any(not isinstance(a, jax.Array) or a.dtype != np.float32 for a in (x, mean, var)):
        return False
    if x.ndim < 2 or np.dtype(dtype or np.float32) != np.float32 or not is_usual_epsilon(epsilon):
        return False
    size, feature_dims = x.shape[-1], {axis % x.ndim for axis in np.atleast_1d(features).tolist()}
    reduced_dims = {axis % x.ndim for axis in np.atleast_1d(reduced).tolist()}
    if feature_dims != {x.ndim - 1} or reduced_dims != set(range(x.ndim - 1)):
        return False
    return isinstance(size, int) and size > 0 and mean.shape == var.shape == (size,)


FLAX = Binding(
    NNX_NORMALIZE.target,
    "flax.batch_norm",
    like_x,
    _nnx_arguments,
    _reference,
    batched_first,
    optional=True,
    parameters=NNX_NORMALIZE.parameters,
)
binds(FLAX)


def _linen_replacement(original: Function) -> Function:
    """Return a replacement of linen's ``_normalize`` that binds ``flax.batch_norm``.

    It calls linen's function if BatchNormalization does not compute the call. linen creates or
    reads a layer's parameters inside ``_normalize``, so the replacement does, too.
    """
    bind = FLAX.primitive_of(original).bind
    signature = inspect.signature(original)

    def normalize(*args: Any, **keywords: Any) -> Any:
        """Bind the normalization if the operator covers the call, else call linen's function."""
        call = signature.bind(*args, **keywords)
        call.apply_defaults()
        layer, arguments = call.args[0], call.arguments
        is_covered = _is_covered(
            arguments["x"],
            arguments["mean"],
            arguments["var"],
            arguments["reduction_axes"],
            arguments["feature_axes"],
            arguments["dtype"],
            arguments["epsilon"],
        )
        if not is_covered or np.dtype(arguments["param_dtype"]) != np.float32:
            return original(*args, **keywords)
        names = [name for name in ("scale", "bias") if arguments[f"use_{name}"]]
        size = arguments["x"].shape[-1]
        if not all(has_vector(layer, name, size) for name in names):
            return original(*args, **keywords)
        scale, bias = _linen_parameters(layer, names, size, arguments)
        operands = (arguments["x"], arguments["mean"], arguments["var"], scale, bias)
        return bind(*operands, epsilon=arguments["epsilon"])

    return normalize


def _linen_parameters(
    layer: Any, names: Sequence[str], size: int, arguments: Mapping[str, Any]
) -> tuple[Any, Any]:
    """Return scale and bias: those in ``names`` as parameters of ``layer``, else ones and zeros."""
    parameters = {"scale": np.ones(size, np.float32), "bias": np.zeros(size, np.float32)}
    for name in names:
        parameters[name] = layer.param(
            name, arguments[f"{name}_init"], [size], arguments["param_dtype"]
        )
    return parameters["scale"], parameters["bias"]


def has_vector(layer: Any, name: str, size: int) -> bool:
    """True if the linen layer has a parameter ``name`` of shape ``[size]`` and type float32."""
    if not layer.has_variable("params", name):
        return False
    value = layer.get_variable("params", name)
    return getattr(value, "dtype", None) == np.float32 and np.shape(value) == (size,)


register(
    Patch(
        LINEN_NORMALIZE.target,
        _linen_replacement,
        optional=True,
        parameters=LINEN_NORMALIZE.parameters,
    )
)
