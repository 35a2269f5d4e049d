"""Build normalization operators, and fit values to the shape of their scale and bias.

LayerNormalization and RMSNormalization have parameters of the shape of the last axes;
InstanceNormalization and GroupNormalization have one number for each channel, axis 1.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.rule import Match, Miss
from smelt.ir.same_shape import Dim, same_dim
from smelt.passes.first_opsets import opset_miss
from smelt.passes.norms.moments import Deviation
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)
OVER_LAST_AXES = ("LayerNormalization", "RMSNormalization")
OVER_CHANNELS = ("InstanceNormalization", "GroupNormalization")

FEW_CHANNELS = 64
"""Number of channels of an image below which a norm over them is not fused.

Time of the Transposes and LayerNormalization between two Convs, relative to the unfused form, in
ONNX Runtime: 1.5 for 8 channels, 1.1 - 1.4 for 16, 0.98 - 1.13 for 32, 0.92 - 1.03 for 64, 0.95 -
1.04 for 96 to 192.
"""


def normalize(deviation: Deviation, m: Match, b: Builder) -> ir.Value | Miss:
    """Return ``deviation.x`` normalized with a scale of ones, between Transposes if the axes need
    them.

    Returns a Miss if no operator fits the axes, dtype, epsilon or opset.
    """
    x, axes = deviation.x, deviation.axes
    if x.dtype not in FLOATS:
        return Miss("x is not known to be floating-point")
    if x.shape is None:
        return Miss("the rank of x is not known")
    if not deviation.centred and (early := opset_miss(m, "RMSNormalization")):
        return early
    if x.dtype == ir.DataType.DOUBLE and float(np.float32(deviation.epsilon)) != deviation.epsilon:
        return Miss("the epsilon is a float64 that a float32 attribute would round")
    rank = len(x.shape)
    if deviation.groups is not None:
        return _over_groups(x, deviation, b)
    if axes == tuple(range(2, rank)) and rank > 3 and deviation.centred and _has_channels(x, 1):
        return _instance(x, deviation, b)
    if axes == tuple(range(axes[0], rank)):
        return _over_last(x, deviation, m, b)
    if axes == (1,) and isinstance(channels := x.shape[1], int):
        if channels < FEW_CHANNELS:
            return Miss(
                f"below {FEW_CHANNELS} channels, two Transposes cost more than the fused norm saves"
            )
        perm = [0, *range(2, rank), 1]
        normal = _over_last(b.op("Transpose", x, perm=perm), deviation, m, b)
        return normal if isinstance(normal, Miss) else _undo_transpose(normal, perm, b)
    if axes == tuple(range(1, rank - 1)) and deviation.centred and _has_channels(x, rank - 1):
        perm = [0, rank - 1, *range(1, rank - 1)]
        return _undo_transpose(_instance(b.op("Transpose", x, perm=perm), deviation, b), perm, b)
    return Miss("the axes are neither the last ones, nor the channels, nor those of an image")


def _over_groups(x: ir.Value, deviation: Deviation, b: Builder) -> ir.Value | Miss:
    """Return InstanceNormalization of x, C last, with each group as one channel, or a Miss.

    ONNX Runtime has no kernel for GroupNormalization.
    """
    if not deviation.centred:
        return Miss("the normalization of groups does not subtract the mean")
    if x.shape is None or not isinstance(x.shape[-1], int):
        return Miss("the number of channels is not known")
    if not _has_channels(x, -1):
        return Miss(f"InstanceNormalization of {x.dtype} has no kernel")
    assert deviation.groups is not None
    if 0 in x.shape.dims:
        return Miss("a dim of x is 0, so no Reshape can state the groups")
    rank = len(x.shape)
    perm = [0, rank - 1, *range(1, rank - 1)]
    moved = b.op("Transpose", x, perm=perm)
    grouped = b.op("Reshape", moved, b.const_i64([0, deviation.groups, -1]))
    normal = _instance(grouped, deviation, b)
    assert normal.shape is not None
    assert moved.shape is not None
    target = constant_shape(normal.shape, moved.shape)
    shape_before = b.const_i64(target) if target is not None else b.op("Shape", moved)
    return _undo_transpose(b.op("Reshape", normal, shape_before), perm, b)


def _undo_transpose(value: ir.Value, perm: list[int], b: Builder) -> ir.Value:
    """Return ``value`` transposed by the inverse of ``perm``, back to the layout of the source."""
    return b.op("Transpose", value, perm=[perm.index(axis) for axis in range(len(perm))])


def _has_channels(x: ir.Value, axis: int) -> bool:
    """True if InstanceNormalization can take ``axis`` of x as channels: their number is known.

    ONNX Runtime has no InstanceNormalization of types other than float32 and float16.
    """
    floats = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
    return x.shape is not None and isinstance(x.shape[axis], int) and x.dtype in floats


def _instance(x: ir.Value, deviation: Deviation, b: Builder) -> ir.Value:
    """Return InstanceNormalization of x with the epsilon of ``deviation``, without scale and
    bias."""
    ones, zeros = channel_constants(x, b)
    return b.op("InstanceNormalization", x, ones, zeros, epsilon=deviation.epsilon)


def channel_constants(x: ir.Value, b: Builder) -> tuple[ir.Value, ir.Value]:
    """Return ones and zeros, one for each channel of ``x``; the number of channels must be
    known."""
    assert x.shape is not None
    assert x.dtype is not None
    channels, dtype = x.shape[1], x.dtype.numpy()
    assert isinstance(channels, int)
    return b.constant(np.ones(channels, dtype)), b.constant(np.zeros(channels, dtype))


def _over_last(x: ir.Value, deviation: Deviation, m: Match, b: Builder) -> ir.Value | Miss:
    """Return a LayerNormalization or RMSNormalization over the last axes, or a Miss."""
    assert x.shape is not None
    assert x.dtype is not None
    if early := opset_miss(m, "LayerNormalization"):
        return early
    axis = len(x.shape) - len(deviation.axes)
    sizes = [size for size in x.shape.dims[axis:] if isinstance(size, int)]
    if len(sizes) < len(deviation.axes):
        return Miss("the normalized sizes are not known")
    ones = b.constant(np.ones(sizes, x.dtype.numpy()))
    op_type = OVER_LAST_AXES[0 if deviation.centred else 1]
    return b.op(op_type, x, ones, axis=axis, epsilon=deviation.epsilon, stash_type=stash_type(x))


def stash_type(x: ir.Value) -> int | None:
    """Return the attribute by which statistics of float64 are float64; None for the default,
    float32."""
    return int(ir.DataType.DOUBLE) if x.dtype == ir.DataType.DOUBLE else None


def parameter_axes(norm: ir.Node, rank: int, version: int) -> range:
    """Return the axes of the input of ``norm`` along which its scale and bias vary."""
    if norm.op_type in OVER_CHANNELS:
        return range(1, 2)
    axis = int(opset.attribute(norm, "axis", version))
    return range(axis % rank, rank)


def as_parameter(
    value: ir.Value, x: ir.Value, axes: range, order: tuple[int, ...], m: Match, b: Builder
) -> ir.Value | None:
    """Return ``value``, which broadcasts to the normalized ``x``, in the shape of a parameter.

    The parameter is the scale or bias of the norm, and varies over ``axes`` of x. The model applies
    ``value`` behind a Transpose of the normalized x by ``order``, so its dims are put back into the
    order of x. None if ``value`` varies along another axis, or would enlarge the result.
    """
    if x.shape is None or value.shape is None or len(value.shape) > len(x.shape):
        return None
    leading_ones: list[int] = [1] * (len(x.shape) - len(value.shape))
    value_dims: list[Dim] = [*leading_ones, *value.shape.dims]
    inverse = [order.index(axis) for axis in range(len(order))]
    dims = [value_dims[axis] for axis in inverse]
    if any(dim != 1 for axis, dim in enumerate(dims) if axis not in axes):
        return None
    parameter_dims: list[Dim] = [x.shape[axis] for axis in axes]
    in_order = len(parameter_dims) == 1 or inverse == sorted(inverse)
    array = m.array(value, limit=None)
    if array is not None and all(isinstance(size, int) for size in parameter_dims):
        fitted = array.reshape(*leading_ones, *array.shape).transpose(inverse)
        fitted = fitted.reshape(fitted.shape[axes.start : axes.stop])
        parameter_sizes = [size for size in parameter_dims if isinstance(size, int)]
        fitted_sizes: tuple[int, ...] = fitted.shape
        if any(
            size not in (1, expected)
            for size, expected in zip(fitted_sizes, parameter_sizes, strict=True)
        ):
            return None
        if in_order and list(array.shape) == parameter_sizes:
            return value
        return b.constant(np.array(np.broadcast_to(fitted, parameter_sizes)))
    varying_dims = [dims[axis] for axis in axes]
    if not in_order or not all(map(same_dim, varying_dims, parameter_dims)):
        return None
    if len(parameter_dims) == len(value.shape):
        return value
    if len(parameter_dims) == 1:
        return b.op("Reshape", value, b.const_i64([-1]))
    return b.op("Squeeze", value, b.const_i64(list(range(len(value.shape) - len(parameter_dims)))))
