"""Lower ``conv_general_dilated`` to Conv, ConvTranspose (dilated inputs) or matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.indexing.padding import padded
from smelt.frontends.jax.plugins.windows.windowed_product import Convolution, Padding, convolved
from smelt.frontends.jax.registry import lowers

CONVOLVED = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""Types lowered to Conv; ONNX Runtime has no kernel for float64, and ONNX no Conv of integers."""


@lowers("conv_general_dilated")
def conv_general_dilated(
    cx: Lowering,
    x: ir.Value,
    w: ir.Value,
    *,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: object,
    preferred_element_type: Any,
    out_sharding: object,
) -> ir.Value:
    """Lower a convolution of ``x`` by ``w`` to Conv, ConvTranspose or matrix products.

    The operands are transposed to the order batch, channels, spatial dims, and the result back.
    Matrix products compute integer and float64 types, no spatial dims, and empty arrays.
    """
    output = ir.DataType.from_numpy(np.dtype(cx.avals_out[0].dtype))
    numbers, groups = dimension_numbers, int(feature_group_count)
    x = cx.cast(cx.transpose(x, numbers.lhs_spec), output)
    w = cx.cast(cx.transpose(w, numbers.rhs_spec), output)
    sizes = [cx.avals_in[0].shape[dim] for dim in numbers.lhs_spec]
    kernel = [cx.avals_in[1].shape[dim] for dim in numbers.rhs_spec]
    result = [cx.avals_out[0].shape[dim] for dim in numbers.out_spec]
    if any(is_symbolic(size) for size in kernel[2:]):
        raise cx.unsupported("the kernel has a symbolic size")
    if batch_group_count != 1:
        groups = int(batch_group_count)
        x, sizes = _batches_as_features(cx, x, sizes, groups)
    shape = Convolution(sizes, kernel, window_strides, padding, lhs_dilation, rhs_dilation, groups)
    if output not in CONVOLVED or not window_strides or 0 in result or 0 in (*sizes, *kernel):
        y = convolved(cx, x, w, shape, result)
    else:
        transposed = _conv_transpose(cx, x, w, shape)
        y = _conv(cx, x, w, shape) if transposed is None else transposed
    return cx.transpose(y, np.argsort(numbers.out_spec).tolist())


def _batches_as_features(
    cx: Lowering, x: ir.Value, sizes: Sequence[Dim], groups: int
) -> tuple[ir.Value, list[Dim]]:
    """Return ``x`` and its shape with groups of batches as groups of features.

    ``[b, c, ...]`` becomes ``[b / groups, groups * c, ...]``, because Conv has feature groups only.
    """
    batch, channels, *spatial = sizes
    x = cx.reshape(x, [groups, batch // groups, channels, *spatial])
    x = cx.transpose(x, [1, 0, 2, *range(3, len(sizes) + 1)])
    merged = [batch // groups, groups * channels, *spatial]
    return cx.reshape(x, merged), merged


def _conv(cx: Lowering, x: ir.Value, w: ir.Value, shape: Convolution) -> ir.Value:
    """Return Conv of ``x``, with padding and dilation that Conv lacks added before it."""
    x, padding = _padded_for_conv(cx, x, shape.sizes, shape.padding, shape.lhs_dilation)
    return cx.op(
        "Conv",
        x,
        w,
        group=shape.groups,
        kernel_shape=[int(size) for size in shape.kernel[2:]],
        strides=_ints(shape.strides),
        dilations=_ints(shape.rhs_dilation),
        pads=[int(low) for low, _ in padding] + [int(high) for _, high in padding],
    )


def _ints(numbers: Sequence[int]) -> list[int]:
    """Return the numbers as Python ints."""
    return [int(number) for number in numbers]


def _padded_for_conv(
    cx: Lowering, x: ir.Value, sizes: Sequence[Dim], padding: Padding, dilation: Sequence[int]
) -> tuple[ir.Value, Padding]:
    """Return ``x`` and the padding left for Conv.

    Conv lacks input dilation, and negative or symbolic padding; those are applied to ``x`` here.
    """
    is_plain = all(not is_symbolic(amount) and amount >= 0 for pair in padding for amount in pair)
    if is_plain and all(step == 1 for step in dilation):
        return x, padding
    pads_to_apply = [(0, 0)] * len(padding) if is_plain else padding
    spatial = [
        (low, high, int(step) - 1)
        for (low, high), step in zip(pads_to_apply, dilation, strict=True)
    ]
    x = padded(cx, x, cx.const_like(0, x), sizes, [(0, 0, 0), (0, 0, 0), *spatial])
    remaining_padding = padding if is_plain else [(0, 0)] * len(padding)
    return x, remaining_padding


def _conv_transpose(cx: Lowering, x: ir.Value, w: ir.Value, shape: Convolution) -> ir.Value | None:
    """Return ConvTranspose for a dilated input; None if its padding would be negative.

    ConvTranspose adds each input element, times the kernel, to the output. So the kernel is
    reversed here, and the padding is ``dilation * (kernel - 1) - padding``.
    """
    kernel, groups = shape.kernel, shape.groups
    if all(step == 1 for step in shape.lhs_dilation) or any(step != 1 for step in shape.strides):
        return None
    if any(is_symbolic(pad) for pair in shape.padding for pad in pair):
        return None
    lows, highs = [], []
    for dilation, taps, (low, high) in zip(
        shape.rhs_dilation, kernel[2:], shape.padding, strict=True
    ):
        reach = int(dilation) * (int(taps) - 1)
        lows.append(reach - int(low))
        highs.append(reach - int(high))
    if min(*lows, *highs) < 0:
        return None
    return cx.op(
        "ConvTranspose",
        x,
        _kernel_for_conv_transpose(cx, w, kernel, groups),
        group=groups,
        kernel_shape=_ints(kernel[2:]),
        strides=_ints(shape.lhs_dilation),
        dilations=_ints(shape.rhs_dilation),
        pads=[*lows, *highs],
    )


def _kernel_for_conv_transpose(
    cx: Lowering, w: ir.Value, kernel: Sequence[Dim], groups: int
) -> ir.Value:
    """Return the kernel ``w`` of shape ``kernel`` as ConvTranspose reads it.

    Its spatial dims are reversed, and in each group its input channels precede its outputs:
    ``[outputs, inputs / groups, ...]`` becomes ``[inputs, outputs / groups, ...]``.
    """
    axes = list(range(2, len(kernel)))
    minus_ones = [-1] * len(axes)
    w = cx.slice(w, minus_ones, [np.iinfo(np.int64).min] * len(axes), axes, minus_ones)
    outputs, inputs_per_group, *spatial = kernel
    if groups == 1:
        return cx.transpose(w, [1, 0, *axes])
    w = cx.reshape(w, [groups, outputs // groups, inputs_per_group, *spatial])
    w = cx.transpose(w, [0, 2, 1, *range(3, len(kernel) + 1)])
    return cx.reshape(w, [groups * inputs_per_group, outputs // groups, *spatial])
