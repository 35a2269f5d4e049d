"""Pools and convolutions of quantized images, whose channels may come last.

ONNX Runtime creates the form with channels last for itself. The bodies here transpose such inputs,
because ONNX operators read channels as the second dim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attributes, Computed, Result, int_of, ints_of
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, ints, operator
from smelt.operators.onnxruntime.microsoft.quantized import dequantized, requantized
from smelt.operators.onnxruntime.microsoft.windows import (
    ATTRIBUTES,
    DILATIONS,
    KERNEL,
    LAST,
    windows_of,
)

QUANTIZED = ("X", "x_scale", "x_zero_point?", "y_scale", "y_zero_point?")


def _has_channels_last(attributes: Attributes) -> bool:
    """True if the channels are the last dim."""
    return bool(attributes.get("channels_last", 0))


def _channels_second(array: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Return ``array`` with channels as its second dim."""
    return np.moveaxis(array, -1, 1) if _has_channels_last(attributes) else array


def _original_layout(array: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Return ``array`` in the layout of the node."""
    return np.moveaxis(array, 1, -1) if _has_channels_last(attributes) else array


def _onnx_attributes(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes that the operator of ONNX also has."""
    return {name: value for name, value in attributes.items() if name != "channels_last"}


def _to_second(b: Builder, x: ir.Value, attributes: Attributes) -> ir.Value:
    """Build ``x`` with channels as its second dim, as ONNX operators read them."""
    assert x.shape is not None
    rank = len(x.shape)
    last = _has_channels_last(attributes)
    return b.op("Transpose", x, perm=[0, rank - 1, *range(1, rank - 1)]) if last else x


def _to_original_layout(b: Builder, y: ir.Value, rank: int, attributes: Attributes) -> ir.Value:
    """Build ``y`` in the layout of the node: with channels last if ``channels_last`` is set."""
    last = _has_channels_last(attributes)
    return b.op("Transpose", y, perm=[0, *range(2, rank), 1]) if last else y


def _result(
    x: ir.Value, channels: Dim | None, attributes: Attributes, kernel: Sequence[int]
) -> Result:
    """Return the type of ``x`` with one spatial element per window, and other ``channels``."""
    if x.shape is None:
        return Result(x.dtype, None)
    dims: list[Dim] = list(x.shape.dims)
    spatial = slice(1, -1) if _has_channels_last(attributes) else slice(2, None)
    dims[spatial] = windows_of(attributes, kernel).result(dims[spatial])
    if channels is not None:
        dims[-1 if _has_channels_last(attributes) else 1] = channels
    return Result(x.dtype, ir.Shape(dims))


def _infer_pool(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of a pool: that of the image, with one element per window."""
    return (
        _result(
            first(inputs),
            channels=None,
            attributes=attributes,
            kernel=ints_of(attributes, "kernel_shape"),
        ),
    )


def _infer_global(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of the input with all spatial dims 1."""
    x = first(inputs)
    if x.shape is None:
        return (Result(x.dtype, None),)
    dims, ones = list(x.shape.dims), [1] * (len(x.shape) - 2)
    result_dims = (
        [dims[0], *ones, dims[-1]] if _has_channels_last(attributes) else [*dims[:2], *ones]
    )
    return (Result(x.dtype, ir.Shape(result_dims)),)


def _average(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the quantized mean of each window; padding counts if ``count_include_pad`` is 1."""
    x, scale, zero, y_scale, y_zero = filled(inputs, 5)
    assert x is not None
    real = dequantized(_channels_second(x, attributes), scale, zero)
    windows = windows_of(attributes, ints_of(attributes, "kernel_shape"))
    inner = tuple(range(-len(windows.kernel), 0))
    counted = windows.views(np.ones_like(real), float(int_of(attributes, "count_include_pad")))
    mean = windows.views(real, 0).sum(inner) / counted.sum(inner)
    result = requantized(mean.astype(np.float32), y_scale, y_zero, x.dtype)
    return (_original_layout(result, attributes),)


def _global_average(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the quantized mean of each channel."""
    x, scale, zero, y_scale, y_zero = filled(inputs, 5)
    assert x is not None
    real = dequantized(_channels_second(x, attributes), scale, zero)
    mean = real.mean(tuple(range(2, x.ndim)), keepdims=True)
    return (_original_layout(requantized(mean, y_scale, y_zero, x.dtype), attributes),)


def _pool_body(op: str) -> object:
    """Return the body of a quantized pool: dequantize, apply the ONNX pool ``op``, quantize."""

    def body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
        """Build DequantizeLinear, the pool and QuantizeLinear in ONNX's layout."""
        x = first(inputs)
        assert x.shape is not None
        parts = [_to_second(b, x, attributes), *inputs[1:3]]
        real = b.op(op, b.op("DequantizeLinear", *present(parts)), **_onnx_attributes(attributes))
        result = b.op("QuantizeLinear", real, *present(inputs[3:5]))
        return (_to_original_layout(b, result, len(x.shape), attributes),)

    return body


def _maximum(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the maximum of each window; channels are last."""
    (x,) = present(inputs)
    kernel = ints_of(attributes, "kernel_shape")
    views = windows_of(attributes, kernel).views(np.moveaxis(x, -1, 1), np.iinfo(x.dtype).min)
    return (np.moveaxis(views.max(tuple(range(-len(kernel), 0))), 1, -1),)


def _infer_maximum(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of a pool whose channels are last."""
    return _infer_pool(inputs, {**attributes, "channels_last": 1})


def _maximum_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build MaxPool between two Transposes."""
    x, layout = first(inputs), {"channels_last": 1}
    assert x.shape is not None
    y = b.op("MaxPool", _to_second(b, x, layout), **_onnx_attributes(attributes))
    return (_to_original_layout(b, y, len(x.shape), layout),)


def _infer_convolution(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of the convolution, in the type of the result's zero point."""
    x, w, zero = first(inputs), input_at(inputs, 3), input_at(inputs, 7)
    dtype = x.dtype if zero is None else zero.dtype
    if w is None or w.shape is None:
        return (Result(dtype, None),)
    kernel = [dim for dim in w.shape.dims[2:] if isinstance(dim, int)]
    if len(kernel) < len(w.shape) - 2:
        return (Result(dtype, None),)
    return (Result(dtype, _result(x, w.shape[0], attributes, kernel).shape),)


def _convolution(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the convolution with int32 sums, rescaled in float32 and quantized."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = present(inputs[:8])
    bias = input_at(inputs, 8)
    ones = (1,) * (w.ndim - 1)
    image = _channels_second(x, attributes).astype(np.int32) - x_zero.astype(np.int32)
    weights = w.astype(np.int32) - np.asarray(w_zero, np.int32).reshape(-1, *ones)
    views = windows_of(attributes, w.shape[2:]).views(image, 0)
    groups = int_of(attributes, "group")
    kernel = tuple(range(-(w.ndim - 2), 0))
    sums = [
        np.tensordot(part, filters, ((1, *kernel), (1, *range(2, w.ndim))))
        for part, filters in zip(np.split(views, groups, 1), np.split(weights, groups), strict=True)
    ]
    total = np.concatenate(sums, -1) + (0 if bias is None else bias)
    factor = x_scale * w_scale / y_scale
    real = total.astype(np.float32) * factor
    result = requantized(real, np.ones((), np.float32), y_zero, y_zero.dtype)
    return (result if _has_channels_last(attributes) else np.moveaxis(result, -1, 1),)


def _convolution_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build ONNX's QLinearConv between two Transposes if channels are last."""
    x = first(inputs)
    assert x.shape is not None
    y = b.op(
        "QLinearConv", _to_second(b, x, attributes), *inputs[1:], **_onnx_attributes(attributes)
    )
    return (_to_original_layout(b, y, len(x.shape), attributes),)


OPERATORS = (
    operator(
        "QLinearAveragePool",
        "AveragePool of quantized numbers",
        inputs=QUANTIZED,
        outputs=("Y",),
        attributes=(*ATTRIBUTES, KERNEL, *ints(ceil_mode=0, count_include_pad=0), *LAST),
        least_ranks={"X": 3},
        infer=_infer_pool,
        reference=_average,
        body=_pool_body("AveragePool"),
    ),
    operator(
        "QLinearGlobalAveragePool",
        "GlobalAveragePool of quantized numbers",
        inputs=("X", "x_scale", "x_zero_point", "y_scale", "y_zero_point"),
        outputs=("Y",),
        attributes=LAST,
        least_ranks={"X": 3},
        infer=_infer_global,
        reference=_global_average,
        body=_pool_body("GlobalAveragePool"),
    ),
    operator(
        "NhwcMaxPool",
        "MaxPool of bytes whose channels come last",
        inputs=("x",),
        outputs=("y",),
        attributes=(*ATTRIBUTES, KERNEL, DILATIONS, *ints(ceil_mode=0)),
        least_ranks={"x": 3},
        infer=_infer_maximum,
        reference=_maximum,
        body=_maximum_body,
    ),
    operator(
        "QLinearConv",
        "QLinearConv whose channels may come last",
        inputs=(
            *("x", "x_scale", "x_zero_point", "w", "w_scale", "w_zero_point"),
            *("y_scale", "y_zero_point", "B?"),
        ),
        outputs=("y",),
        attributes=(
            *ATTRIBUTES,
            DILATIONS,
            replace(KERNEL, required=False),
            *ints(group=1),
            *LAST,
        ),
        least_ranks={"x": 3, "w": 3},
        infer=_infer_convolution,
        reference=_convolution,
        body=_convolution_body,
    ),
)
