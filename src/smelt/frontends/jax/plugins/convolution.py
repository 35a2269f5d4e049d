"""``conv_general_dilated`` as Conv, or ConvTranspose where the input is dilated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.padding import padded
from smelt.frontends.jax.registry import lowers

Pads = Sequence[tuple[Dim, Dim]]


@lowers("conv_general_dilated")
def conv_general_dilated(
    cx: Lowering,
    x: ir.Value,
    w: ir.Value,
    *,
    window_strides: Sequence[int],
    padding: Pads,
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: object,
    preferred_element_type: Any,
    out_sharding: object,
) -> ir.Value:
    """Channels are moved first, as ONNX has them, and back."""
    output = ir.DataType.from_numpy(np.dtype(cx.avals_out[0].dtype))
    if batch_group_count != 1:
        raise cx.unsupported(f"batch_group_count is {batch_group_count}")
    if not output.is_floating_point():
        raise cx.unsupported(f"ONNX convolves no {output.name.lower()}")
    if not window_strides:
        raise cx.unsupported("it has no spatial dims")
    numbers = dimension_numbers
    x = cx.cast(cx.transpose(x, numbers.lhs_spec), output)
    w = cx.cast(cx.transpose(w, numbers.rhs_spec), output)
    sizes = [cx.avals_in[0].shape[dim] for dim in numbers.lhs_spec]
    kernel = [cx.avals_in[1].shape[dim] for dim in numbers.rhs_spec]
    if any(is_symbolic(size) for size in kernel):
        raise cx.unsupported("the kernel has a symbolic size")
    y = _conv_transpose(
        cx, x, w, kernel, window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count
    )
    if y is None:
        x, padding = _prepared(cx, x, sizes, padding, lhs_dilation)
        y = cx.op(
            "Conv",
            x,
            w,
            group=int(feature_group_count),
            kernel_shape=[int(size) for size in kernel[2:]],
            strides=_ints(window_strides),
            dilations=_ints(rhs_dilation),
            pads=[int(low) for low, _ in padding] + [int(high) for _, high in padding],
        )
    return cx.transpose(y, np.argsort(numbers.out_spec).tolist())


def _ints(numbers: Sequence[int]) -> list[int]:
    return [int(number) for number in numbers]


def _prepared(
    cx: Lowering, x: ir.Value, sizes: Sequence[Dim], padding: Pads, dilation: Sequence[int]
) -> tuple[ir.Value, Pads]:
    """``x`` with what Conv cannot do itself: dilation, and padding negative or unknown."""
    plain = all(not is_symbolic(p) and p >= 0 for pair in padding for p in pair)
    if plain and all(step == 1 for step in dilation):
        return x, padding
    edges = [(0, 0)] * len(padding) if plain else padding
    spatial = [
        (low, high, int(step) - 1) for (low, high), step in zip(edges, dilation, strict=True)
    ]
    x = padded(cx, x, cx.const_like(0, x), sizes, [(0, 0, 0), (0, 0, 0), *spatial])
    return x, padding if plain else [(0, 0)] * len(padding)


def _conv_transpose(
    cx: Lowering,
    x: ir.Value,
    w: ir.Value,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Pads,
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    groups: int,
) -> ir.Value | None:
    """A dilated input is a stride of ConvTranspose; None where its padding would be negative.

    It scatters with the kernel reversed, and starts ``dilation * (kernel - 1)`` further out.
    """
    if all(step == 1 for step in lhs_dilation) or any(step != 1 for step in strides):
        return None
    if any(is_symbolic(p) for pair in padding for p in pair):
        return None
    reach = [int(d) * (int(k) - 1) for d, k in zip(rhs_dilation, kernel[2:], strict=True)]
    lows = [r - int(low) for r, (low, _) in zip(reach, padding, strict=True)]
    highs = [r - int(high) for r, (_, high) in zip(reach, padding, strict=True)]
    if min(*lows, *highs) < 0:
        return None
    axes = list(range(2, len(kernel)))
    backwards = [-1] * len(axes)
    w = cx.slice(w, backwards, [np.iinfo(np.int64).min] * len(axes), axes, backwards)
    out, each, *spatial = (int(size) for size in kernel)
    if groups > 1:
        w = cx.reshape(w, [groups, out // groups, each, *spatial])
        w = cx.transpose(w, [0, 2, 1, *range(3, len(kernel) + 1)])
        w = cx.reshape(w, [groups * each, out // groups, *spatial])
    else:
        w = cx.transpose(w, [1, 0, *axes])
    return cx.op(
        "ConvTranspose",
        x,
        w,
        group=groups,
        kernel_shape=spatial,
        strides=_ints(lhs_dilation),
        dilations=_ints(rhs_dilation),
        pads=[*lows, *highs],
    )
