"""Lower a convolution to matrix products, for element types that Conv lacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.indexing.padding import padded
from smelt.frontends.jax.plugins.windows.windows import Window, patches

Padding: TypeAlias = Sequence[tuple[Dim, Dim]]

MULTIPLIED = {
    ir.DataType.BOOL: ir.DataType.INT32,
    ir.DataType.INT8: ir.DataType.INT32,
    ir.DataType.INT16: ir.DataType.INT32,
    ir.DataType.UINT8: ir.DataType.INT32,
    ir.DataType.UINT16: ir.DataType.INT32,
}
"""For types that MatMul lacks, the type to compute in.

Cast back, integers wrap to the same bits, and a nonzero count of true products is True.
"""


@dataclass(frozen=True)
class Convolution:
    """The parameters of a convolution in ONNX order: batch and channels come before the window.

    ``sizes`` are the input's dims ``[N, C, *image]``, ``kernel`` those of ``w [O, C / groups,
    *window]``.
    """

    sizes: Sequence[Dim]
    kernel: Sequence[Dim]
    strides: Sequence[int]
    padding: Padding
    lhs_dilation: Sequence[int]
    rhs_dilation: Sequence[int]
    groups: int

    def window(self) -> Window:
        """Return the window that the kernel covers, on all dims of the input."""
        return Window(
            [1, 1, *(int(size) for size in self.kernel[2:])],
            [1, 1, *(int(step) for step in self.strides)],
            [(0, 0), (0, 0), *self.padding],
            [1, 1, *(int(step) for step in self.rhs_dilation)],
        )


def convolved(
    cx: Lowering, x: ir.Value, w: ir.Value, shape: Convolution, result: Sequence[Dim]
) -> ir.Value:
    """Return the convolution of ``x`` by ``w`` as one batched MatMul (im2col).

    Each window becomes a row: ``[N, groups, windows, C / groups * elements]`` times ``[groups, C /
    groups * elements, O / groups]``. ``result`` is the shape ``[N, O, *windows]``.
    """
    assert x.dtype is not None
    dtype, window, groups = x.dtype, shape.window(), shape.groups
    wide = MULTIPLIED.get(dtype, dtype)
    x, w = cx.cast(x, wide), cx.cast(w, wide)
    x = padded(cx, x, cx.const_like(0, x), shape.sizes, window.config([1, 1, *shape.lhs_dilation]))
    batch, channels = shape.sizes[:2]
    output_channels, result_sizes = shape.kernel[0], list(result[2:])
    window_count, window_elements = prod(result_sizes), prod(window.sizes)
    group_channels = channels // groups
    rows = patches(cx, x, window, [batch, channels, *result_sizes])
    rows = cx.reshape(rows, [batch, groups, group_channels, window_count, window_elements])
    rows = cx.transpose(rows, [0, 1, 3, 2, 4])
    rows = cx.reshape(rows, [batch, groups, window_count, group_channels * window_elements])
    w = cx.reshape(w, [groups, output_channels // groups, group_channels * window_elements])
    y = cx.op("MatMul", rows, cx.transpose(w, [0, 2, 1]))
    y = cx.reshape(cx.transpose(y, [0, 1, 3, 2]), [batch, output_channels, *result_sizes])
    return cx.cast(y, dtype)
