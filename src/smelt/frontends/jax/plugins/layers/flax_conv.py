"""flax nnx convolution, channels last, with its bias: one equation, one operator."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from smelt.frontends.jax import compat
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.patching.bindings import Binding, Call, binds
from smelt.frontends.jax.patching.library_functions import NNX_CONV
from smelt.frontends.jax.plugins.layers.conv_window import (
    attributes_of,
    is_window,
    result_sizes,
)
from smelt.frontends.jax.registry import lowers


@lowers("flax.conv")
def conv(
    cx: Lowering,
    x: ir.Value,
    w: ir.Value,
    *bias: ir.Value,
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> ir.Value:
    """Lower to Conv; channels are transposed from the last to the second place and back."""
    kernel = cx.avals_in[1].shape
    last = len(kernel) - 1
    result = cx.op(
        "Conv",
        cx.transpose(x, (0, last, *range(1, last))),
        cx.transpose(w, (last, last - 1, *range(last - 1))),
        *bias,
        **attributes_of(kernel[:-2], strides, padding, dilation, groups),
    )
    return cx.transpose(result, (0, *range(2, last + 1), 1))


def _reference(
    x: jax.Array,
    w: jax.Array,
    *bias: jax.Array,
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Any:
    """Return flax's result for a batch of images."""
    last = w.ndim - 1
    channels_last = (0, last, *range(1, last))
    numbers = lax.ConvDimensionNumbers(
        lhs_spec=channels_last,
        rhs_spec=(last, last - 1, *range(last - 1)),
        out_spec=channels_last,
    )
    y = lax.conv_general_dilated(
        x,
        w,
        strides,
        padding,
        rhs_dilation=dilation,
        dimension_numbers=numbers,
        feature_group_count=groups,
    )
    return y + bias[0].reshape((1,) * last + bias[0].shape) if bias else y


def _result_type(
    x: compat.Aval, w: compat.Aval, *bias: compat.Aval, groups: int, **window: Any
) -> compat.Aval:
    """Return the result type: ``[batch, *windows, channels]``."""
    sizes = result_sizes(x.shape[1:-1], w.shape[:-2], **window)
    return compat.ShapedArray((x.shape[0], *sizes, w.shape[-1]), x.dtype)


def _arguments(layer: Any, inputs: Any, out_sharding: Any = None) -> Call | None:
    """Return operands and window of a call that the operator covers, None for any other call.

    It does not cover invalid calls, masked weights, dilated inputs, padding other than zeros,
    symbolic sizes, several batch dims, and types other than float32.
    """
    from flax.nnx.nn import dtypes

    if out_sharding is not None or layer.mask is not None:
        return None
    if layer.promote_dtype is not dtypes.promote_dtype or layer.dtype not in (None, jnp.float32):
        return None
    is_own = layer.conv_general_dilated is lax.conv_general_dilated
    if not is_own or layer.preferred_element_type is not None:
        return None
    w = layer.kernel[...]
    bias = layer.bias[...] if layer.use_bias else None
    operands = (inputs, w) if bias is None else (inputs, w, bias)
    if not all(
        isinstance(operand, jax.Array | np.ndarray) and operand.dtype == np.float32
        for operand in operands
    ):
        return None
    if not _is_fitting(layer, inputs, w, bias):
        return None
    window = _window(layer, inputs.shape[1:-1], w.shape[:-2])
    if window is None or not is_window(inputs.shape[1:-1], w.shape[:-2], window):
        return None
    return operands, {**window, "groups": layer.feature_group_count}


def _is_fitting(layer: Any, x: Any, w: Any, bias: Any) -> bool:
    """True if the shapes of input, kernel and bias fit the layer and are known."""
    groups = layer.feature_group_count
    if w.ndim < 3 or x.ndim != w.ndim or w.shape[:-2] != layer.kernel_size:
        return False
    if not all(isinstance(size, int) for size in (*x.shape[1:], *w.shape)):
        return False
    if 0 in (*x.shape, *w.shape):
        return False
    if x.shape[-1] != w.shape[-2] * groups or w.shape[-1] % groups:
        return False
    return bias is None or bias.shape == w.shape[-1:]


def _window(layer: Any, image_sizes: Any, kernel_sizes: Any) -> dict[str, Any] | None:
    """Return strides, padding and dilation of each image dim; None if Conv has no such window.

    ``image_sizes`` and ``kernel_sizes`` are spatial sizes. None is for a dilated input, a number of
    strides or dilations that is not the number of image dims, and padding other than zeros.
    """
    from flax.nnx.nn.linear import canonicalize_padding

    def per_dim(number: Any) -> tuple[int, ...]:
        """Return ``number`` as one value for each image dim; None means 1."""
        number = 1 if number is None else number
        return (number,) * len(kernel_sizes) if isinstance(number, int) else tuple(number)

    strides, dilation = per_dim(layer.strides), per_dim(layer.kernel_dilation)
    padding = canonicalize_padding(layer.padding, len(kernel_sizes))
    if any(step != 1 for step in per_dim(layer.input_dilation)):
        return None
    if len(strides) != len(kernel_sizes) or len(dilation) != len(kernel_sizes):
        return None
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            return None
        window_sizes = [
            dilated * (taps - 1) + 1 for dilated, taps in zip(dilation, kernel_sizes, strict=True)
        ]
        padding = lax.padtype_to_pads(image_sizes, window_sizes, strides, padding)
    return {"strides": strides, "padding": tuple(map(tuple, padding)), "dilation": dilation}


binds(
    Binding(
        NNX_CONV.target,
        "flax.conv",
        _result_type,
        _arguments,
        _reference,
        optional=True,
        parameters=NNX_CONV.parameters,
    )
)
