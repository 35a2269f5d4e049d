"""equinox convolution of one image, which users map over a batch.

The layer adds a batch dim of 1, convolves, removes the dim and adds its bias. Under vmap each of
these steps becomes equations and nodes that passes would have to remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import onnx_ir as ir
from jax import lax

from smelt.frontends.jax import compat
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.bindings import Binding, Call, binds
from smelt.frontends.jax.patching.library_functions import EQUINOX_CONV
from smelt.frontends.jax.plugins.layers.conv_window import (
    attributes_of,
    is_window,
    result_sizes,
)
from smelt.frontends.jax.plugins.layers.layer_norm import batched_first
from smelt.frontends.jax.registry import lowers


@lowers("equinox.conv")
def conv(
    cx: Lowering,
    x: ir.Value,
    w: ir.Value,
    *bias: ir.Value,
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> ir.Value | list[Operand]:
    """Lower to Conv: ``x [..., channels, *image]``, its leading dims merged into one batch dim."""
    shape, kernel = cx.avals_in[0].shape, cx.avals_in[1].shape
    front, image = shape[: -len(kernel) + 1], shape[-len(kernel) + 1 :]
    if 0 in front:
        numbers: dict[str, Any] = {"strides": strides, "padding": padding, "dilation": dilation}
        return cx.inline_traced(partial(_reference, **numbers, groups=groups))
    if len(front) != 1:
        x = cx.reshape(x, [_product(front), *image]) if front else cx.unsqueeze(x, [0])
    result = cx.op(
        "Conv",
        x,
        w,
        *(cx.reshape(vector, kernel[:1]) for vector in bias),
        **attributes_of(kernel[2:], strides, padding, dilation, groups),
    )
    if len(front) == 1:
        return result
    return cx.reshape(result, cx.avals_out[0].shape) if front else cx.squeeze(result, [0])


def _product(sizes: Sequence[compat.Dim]) -> compat.Dim:
    """Return the product of ``sizes``, which may be symbolic."""
    product: compat.Dim = 1
    for size in sizes:
        product = product * size
    return product


def _reference(
    x: jax.Array,
    w: jax.Array,
    *bias: jax.Array,
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> Any:
    """Return equinox's result, for any leading dims."""
    if x.ndim >= w.ndim:
        inner = partial(
            _reference, strides=strides, padding=padding, dilation=dilation, groups=groups
        )
        return jax.vmap(lambda image: inner(image, w, *bias))(x)
    y = lax.conv_general_dilated(
        lax.expand_dims(x, (0,)),
        w,
        strides,
        padding,
        rhs_dilation=dilation,
        feature_group_count=groups,
    )
    y = lax.squeeze(y, (0,))
    return y + bias[0] if bias else y


def _result_type(
    x: compat.Aval, w: compat.Aval, *bias: compat.Aval, groups: int, **window: Any
) -> compat.Aval:
    """Return the result type: ``[..., channels, *windows]``."""
    image = x.shape[1 - len(w.shape) :]
    sizes = result_sizes(image[1:], w.shape[2:], **window)
    return compat.ShapedArray((*x.shape[: 1 - len(w.shape)], w.shape[0], *sizes), x.dtype)


def _arguments(layer: Any, x: Any, *, key: Any = None) -> Call | None:
    """Return operands and window of a call that the operator covers, None for any other call.

    It does not cover invalid calls, padding other than zeros, symbolic sizes, and types other than
    float32.
    """
    w, bias = layer.weight, layer.bias
    if layer.padding_mode != "ZEROS":
        return None
    operands = (x, w, bias) if layer.use_bias else (x, w)
    if not all(
        isinstance(operand, jax.Array | np.ndarray) and operand.dtype == np.float32
        for operand in operands
    ):
        return None
    spatial, groups = layer.num_spatial_dims, layer.groups
    if x.ndim != spatial + 1 or w.ndim != spatial + 2 or not spatial:
        return None
    if not all(isinstance(size, int) and size > 0 for size in (*x.shape, *w.shape)):
        return None
    if x.shape[0] != w.shape[1] * groups or w.shape[0] % groups:
        return None
    if layer.use_bias and bias.shape != (w.shape[0], *[1] * spatial):
        return None
    padding, dilation = layer.padding, layer.dilation
    if isinstance(padding, str):
        window_sizes = [
            dilated * (taps - 1) + 1 for dilated, taps in zip(dilation, w.shape[2:], strict=True)
        ]
        padding = tuple(lax.padtype_to_pads(x.shape[1:], window_sizes, layer.stride, padding))
    window = {"strides": layer.stride, "padding": padding, "dilation": dilation}
    fits = is_window(x.shape[1:], w.shape[2:], window)
    return (operands, {**window, "groups": groups}) if fits else None


binds(
    Binding(
        EQUINOX_CONV.target,
        "equinox.conv",
        _result_type,
        _arguments,
        _reference,
        batched_first,
        optional=True,
        parameters=EQUINOX_CONV.parameters,
    )
)
