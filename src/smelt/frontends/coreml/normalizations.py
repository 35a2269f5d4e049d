"""Readers of normalizations."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


def _filled(call: Call, name: str, default: float, shape: list[int]) -> ir.Value:
    """Return the parameter ``name`` in the type of ``x``; if missing, ``default`` in ``shape``."""
    if call.has(name):
        return call.like(name, call.x)
    assert call.x.dtype is not None
    return call.scope.shared.constant(np.full(shape, default, call.x.dtype.numpy()))


def _channels(call: Call) -> list[int]:
    """Return ``[C]``, the number of channels of ``x``; raises E121 if it is open."""
    channels = call.sizes(call.x, [1])
    if channels is None:
        raise call.refused("the number of its channels is open")
    return channels


@reads("batch_norm")
def _batch_norm(call: Call) -> ir.Value:
    """Return ``gamma * (x - mean) / sqrt(variance + epsilon) + beta`` by channel."""
    channels = _channels(call)
    scale, shift = _filled(call, "gamma", 1, channels), _filled(call, "beta", 0, channels)
    moments = call.like("mean", call.x), call.like("variance", call.x)
    epsilon = call.number("epsilon", 1e-5)
    return call.op("BatchNormalization", call.x, scale, shift, *moments, epsilon=epsilon)


@reads("instance_norm")
def _instance_norm(call: Call) -> ir.Value:
    """Return ``x`` normalized over the spatial dims."""
    channels = _channels(call)
    scale, shift = _filled(call, "gamma", 1, channels), _filled(call, "beta", 0, channels)
    epsilon = call.number("epsilon", 1e-5)
    return call.op("InstanceNormalization", call.x, scale, shift, epsilon=epsilon)


@reads("layer_norm")
def _layer_norm(call: Call) -> ir.Value:
    """Return ``x`` normalized over ``axes``, by default over all.

    ONNX normalizes over the last axes, so ``axes`` are moved there and back. If their sizes are
    open, the formula is added instead of LayerNormalization.
    """
    x, rank = call.x, call.rank(call.x)
    given = call.integers("axes", range(rank))
    axes = [axis % rank for axis in given if -rank <= axis < rank]
    if axes != sorted(set(axes)) or len(axes) != len(given) or not axes:
        raise call.refused(f"its axes {given} do not rise, or do not fit rank {rank}")
    perm = [axis for axis in range(rank) if axis not in axes] + axes
    sizes = call.sizes(x, axes)
    epsilon = call.number("epsilon", 1e-5)
    axes_last = call.transposed(x, perm)
    if sizes is None:
        result = _normalized(call, axes_last, len(axes), epsilon)
        for name, op_type in (("gamma", "Mul"), ("beta", "Add")):
            result = call.op(op_type, result, call.like(name, x)) if call.has(name) else result
    else:
        scale = _filled(call, "gamma", 1, sizes)
        shift = call.like("beta", x) if call.has("beta") else None
        axis = rank - len(axes)
        result = call.op(
            "LayerNormalization", axes_last, scale, shift, axis=axis - rank, epsilon=epsilon
        )
    return call.transposed(result, [perm.index(axis) for axis in range(rank)])


def _normalized(call: Call, x: ir.Value, count: int, epsilon: float) -> ir.Value:
    """Return ``(x - mean) / sqrt(variance + epsilon)`` over the last ``count`` axes."""
    axes = list(range(-count, 0))
    centred = call.op("Sub", x, call.builder.mean(x, axes))
    variance = call.builder.mean(call.op("Mul", centred, centred), axes)
    shifted = call.op("Add", variance, call.filled(epsilon, x))
    return call.op("Div", centred, call.op("Sqrt", shifted))


@reads("l2_norm")
def _l2_norm(call: Call) -> ir.Value:
    """Return ``x / sqrt(sum of x * x over the last three axes + epsilon)``."""
    squares = call.op("ReduceSumSquare", call.x, call.ints([-3, -2, -1]), keepdims=1)
    shifted = call.op("Add", squares, call.filled(call.number("epsilon", 1e-6), call.x))
    return call.op("Div", call.x, call.op("Sqrt", shifted))


@reads("local_response_norm")
def _local_response_norm(call: Call) -> ir.Value:
    """Return ``x / (k + alpha * mean of x * x over size neighbouring channels) ** beta``."""
    alpha, beta = call.number("alpha", 1e-4), call.number("beta", 0.75)
    size, bias = call.integer("size"), call.number("k", 1.0)
    if size % 2 == 0:
        raise call.refused("of an even size, Core ML does not say which channels count")
    x, rank = call.x, call.rank(call.x)
    if rank == 3:  # ONNX Runtime takes images only
        x = call.op("Unsqueeze", x, call.ints([3]))
    result = call.op("LRN", x, size=size, bias=bias, alpha=alpha, beta=beta)
    return call.op("Squeeze", result, call.ints([3])) if rank == 3 else result
