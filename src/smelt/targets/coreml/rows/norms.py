"""Rows for normalizations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val


@writes("BatchNormalization")
def batch_norm(c: Call) -> None:
    """Write batch_norm for constant statistics at ranks 3 to 5, else its formula:
    ``(x - mean) * (gamma / sqrt(variance + epsilon)) + beta``."""
    if c.attribute("training_mode") or len([o for o in c.node.outputs if o.name]) > 1:
        raise Refused("it updates its statistics, as in training", "export in evaluation mode")
    epsilon = float(c.attribute("epsilon"))
    c.widen_for(epsilon)
    x = c.x()
    arrays = [c.array(index) for index in range(1, 5)]
    if x.rank in (3, 4, 5) and all(each is not None for each in arrays):
        gamma, beta, mean, variance = (c.x(index, x.element) for index in range(1, 5))
        statistics: dict[str, Any] = {
            "mean": mean,
            "variance": variance,
            "gamma": gamma,
            "beta": beta,
        }
        c.done(c.write("batch_norm", x=x, epsilon=epsilon, **statistics))
        return
    axes = range(1, x.rank - 1)
    gamma, beta, mean, variance = (
        c.expand(each, axes) if x.rank > 2 else each
        for each in (c.x(index, x.element) for index in range(1, 5))
    )
    scale = c.op("real_div", gamma, c.op("sqrt", c.op("add", variance, epsilon)))
    c.done(c.op("add", c.op("mul", c.op("sub", x, mean), scale), beta))


@writes("InstanceNormalization")
def instance_norm(c: Call) -> None:
    """Write instance_norm for constant scale and bias at ranks 3 and 4.

    Else write layer_norm over the axes after the channels, then scale and bias.
    """
    epsilon = float(c.attribute("epsilon"))
    c.widen_for(epsilon)
    x = c.x()
    if x.rank in (3, 4) and c.array(1) is not None and c.array(2) is not None:
        gamma, beta = c.x(1), c.x(2)
        c.done(c.write("instance_norm", x=x, gamma=gamma, beta=beta, epsilon=epsilon))
        return
    normal = normalized(c, x, range(2, x.rank), epsilon)
    axes = range(1, x.rank - 1)
    gamma, beta = (c.expand(c.x(index), axes) for index in (1, 2))
    c.done(c.op("add", c.op("mul", normal, gamma), beta))


def normalized(c: Call, x: Val, axes: Sequence[int], epsilon: float) -> Val:
    """Return ``x`` with mean 0 and variance 1 over ``axes``."""
    return c.w.op("layer_norm", x.element, x.dims, x=x, axes=list(axes), epsilon=epsilon)


@writes("LayerNormalization")
def layer_norm(c: Call) -> None:
    """Write layer_norm.

    MIL takes constant scale and bias of the normalized shape. Others are applied after it, by mul
    and add.
    """
    epsilon = float(c.attribute("epsilon"))
    c.widen_for(epsilon)
    x = c.x()
    axes = list(range(int(c.attribute("axis")) % x.rank, x.rank))
    shape = tuple(x.dims[axis] for axis in axes)
    parts = [c.array(1), c.array(2) if c.has(2) else np.zeros(1)]
    whole = parts[0] is not None and parts[0].shape == shape
    whole = whole and (not c.has(2) or (parts[1] is not None and parts[1].shape == shape))
    statistics = _statistics(c, x, axes, epsilon) if len(c.node.outputs) > 1 else ()
    if whole:
        beta = c.x(2) if c.has(2) else None
        result = c.write("layer_norm", x=x, axes=axes, gamma=c.x(1), beta=beta, epsilon=epsilon)
    else:
        result = c.op("mul", normalized(c, x, axes, epsilon), c.x(1))
        result = c.op("add", result, c.x(2)) if c.has(2) else result
    c.done(result, *statistics)


def _statistics(c: Call, x: Val, axes: Sequence[int], epsilon: float) -> tuple[Val, Val]:
    """Return the mean and ``1 / sqrt(variance + epsilon)`` over ``axes``, results 1 and 2."""
    mean = c.reduce("reduce_mean", x, axes)
    centered = c.op("sub", x, mean)
    variance = c.reduce("reduce_mean", c.op("mul", centered, centered), axes)
    inverse = c.w.op("rsqrt", x.element, variance.dims, x=variance, epsilon=epsilon)
    return mean, inverse


@writes("LRN")
def local_response_norm(c: Call) -> None:
    """Write local_response_norm over an odd number of channels."""
    size, x = int(c.attribute("size")), c.x()
    if size % 2 == 0:
        raise Refused("Core ML sums over an odd number of channels only")
    if x.rank not in (3, 4):
        raise Refused(f"Core ML normalizes over channels of 3 or 4 dims, not {x.rank}")
    names = {"alpha": "alpha", "beta": "beta", "k": "bias"}  # of MIL, and of ONNX
    numbers: dict[str, Any] = {name: float(c.attribute(onnx)) for name, onnx in names.items()}
    c.done(c.write("local_response_norm", x=x, size=size, **numbers))


@writes("RMSNormalization")
def rms_norm(c: Call) -> None:
    """Write ``x * rsqrt(mean(x * x) + epsilon) * scale``.

    The mean is computed in float32, as in ONNX: float16 cannot hold the square of 256.
    """
    epsilon = float(c.attribute("epsilon"))
    c.widen_for(epsilon)
    x, wide = c.x(), c.x(0, Element.FLOAT32)
    axes = range(int(c.attribute("axis")) % x.rank, x.rank)
    mean = c.reduce("reduce_mean", c.op("mul", wide, wide), axes)
    inverse = c.w.op("rsqrt", mean.element, mean.dims, x=mean, epsilon=epsilon)
    c.done(c.op("mul", c.op("mul", x, c.cast(inverse, x.element)), c.x(1)))
