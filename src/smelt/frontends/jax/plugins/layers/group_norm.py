"""flax nnx group normalization, channels last: one equation, one InstanceNormalization."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.bindings import Binding, Call, binds
from smelt.frontends.jax.patching.library_functions import NNX_GROUP_NORM
from smelt.frontends.jax.plugins.layers.layer_norm import (
    are_absent,
    flax_arguments,
    flax_statistics,
    like_x,
    with_rank_of,
)
from smelt.frontends.jax.registry import lowers


@lowers("flax.group_norm")
def group_norm(
    cx: Lowering,
    x: ir.Value,
    scale: ir.Value,
    *bias: ir.Value,
    groups: int,
    epsilon: float,
    fast: bool,
) -> ir.Value | list[Operand]:
    """Lower to InstanceNormalization: ``x [N, ..., C]`` is reshaped to ``[N, groups, -1]``.

    ``fast`` only affects rounding. ONNX Runtime has no kernel for GroupNormalization, and its
    function body returns NaN where the mean is far from 0. The targets ``c`` and ``host`` fuse
    these nodes to GroupNormalization.
    """
    if not cx.is_never_empty():
        return cx.inline_traced(partial(_reference, groups=groups, epsilon=epsilon, fast=fast))
    shape = cx.avals_in[0].shape
    last = len(shape) - 1
    channels_second = cx.transpose(x, (0, last, *range(1, last)))
    grouped = cx.op("Reshape", channels_second, cx.constant(np.array([0, groups, -1])))
    ones, zeros = (cx.constant(np.full(groups, fill, np.float32)) for fill in (1, 0))
    normal = cx.op("InstanceNormalization", grouped, ones, zeros, epsilon=epsilon)
    sizes = (shape[0], shape[last], *shape[1:last])
    ungrouped = cx.reshape(normal, sizes)
    channels_last = cx.transpose(ungrouped, (0, *range(2, last + 1), 1))
    scaled = cx.op("Mul", channels_last, scale)
    return cx.op("Add", scaled, *bias) if bias else scaled


def _reference(
    x: jax.Array,
    scale: jax.Array,
    *bias: jax.Array,
    groups: int,
    epsilon: float,
    fast: bool,
) -> Any:
    """Return the normalization as flax computes it."""
    size = x.shape[-1] // groups
    axes = tuple(range(1, x.ndim - 1))
    grouped = x.reshape((*x.shape[:-1], groups, size))
    mean, variance = (
        jnp.expand_dims(jnp.repeat(statistic, size, axis=1), axes)
        for statistic in flax_statistics(grouped, (*axes, -1), fast)
    )
    y = (x - mean) * (lax.rsqrt(variance + epsilon) * with_rank_of(scale, x))
    return y + with_rank_of(bias[0], x) if bias else y


def _arguments(layer: Any, x: Any, **others: Any) -> Call | None:
    """Return operands and parameters of a call that the operator covers, None for any other call.

    It covers normalization over the last axis in groups, without masks or explicit reduction axes.
    """
    if not are_absent(others) or layer.reduction_axes is not None or np.ndim(x) < 2:
        return None
    arguments = flax_arguments(layer, x)
    if arguments is None or layer.feature_axis not in (-1, np.ndim(x) - 1):
        return None
    if layer.num_groups * layer.group_size != np.shape(x)[-1]:
        return None
    operands, params = arguments
    return operands, {**params, "groups": int(layer.num_groups)}


FLAX = Binding(
    NNX_GROUP_NORM.target,
    "flax.group_norm",
    like_x,
    _arguments,
    _reference,
    optional=True,
    parameters=NNX_GROUP_NORM.parameters,
)
binds(FLAX)
