"""Depthwise convolutions of bytes: a padded plane as 16-bit integers, whose pairs of neighbors are
multiplied by pairs of weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.emit.writer import Writer
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.epilogue import epilogue_minus_zero_point
from smelt.native.kernels.quantized.operands import is_zero_computed
from smelt.native.kernels.quantized.pixel_major.c_text import header
from smelt.native.kernels.quantized.pixel_major.conv import emit_copy
from smelt.native.kernels.quantized.pixel_major.ending import Ending, declare_ending
from smelt.native.kernels.quantized.pixel_major.layout import Layout
from smelt.native.types import C_TYPES

MOST_POSITIONS = 64
"""The most positions of the kernel; each pair of them is two lines of C."""


def supports(weights: np.ndarray, window: Window) -> bool:
    """True if each group has one channel and columns of the kernel are neighbors."""
    group, _, channels, positions = weights.shape
    neighbors = window.dilations[2] == 1 or window.kernel[2] == 1
    return channels == 1 and group > 1 and neighbors and positions <= MOST_POSITIONS


def scratch_bytes(instance: Instance, window: Window, weights: np.ndarray) -> int:
    """Return the size of the scratch space: a band of a plane, then the initial sums."""
    sums = weights.shape[0] * weights.shape[1] if is_zero_computed(instance) else 0
    return Layout.of(window, weights).gathered_offset + 4 * sums


def emit(cx: KernelContext, window: Window, weights: np.ndarray) -> None:
    """Write a loop over planes: the copy of a band with its padding, then its filters' rows."""
    body, (group, filters, _, positions) = cx.body, weights.shape
    layout = Layout.of(window, weights)
    x, output = cx.input(0), cx.output()
    type_ = ir.DataType.INT8 if layout.is_widened else ir.DataType.INT16
    packed = cx.constant(weights.reshape(-1), C_TYPES[type_])
    scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
    sums = weights.astype(np.int64)
    start = f"{scratch} + {layout.gathered_offset // 2}"
    epilogue = epilogue_minus_zero_point(cx, sums.sum((2, 3)).reshape(-1), 0, start)
    ending = declare_ending(cx, epilogue, np.abs(sums).sum((2, 3)).reshape(-1))
    row = _row_function(cx, layout, ending)
    pixels, (_, _, wide) = window.pixels, window.output
    with body.loop("n", x.shape[0]), body.shared_loop("c", group):
        first = f"(n * {group} + c) * {window.plane}"
        body.line(f"const {x.type.name} *image = {x.name} + {first};")
        with body.loop("h", layout.height, step=layout.rows):
            body.line(f"const ptrdiff_t left = {layout.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {layout.rows} ? left : {layout.rows};")
            emit_copy(cx, layout, scratch)
            with body.loop("o", f"(c + 1) * {filters}", f"c * {filters}"):
                at = f"(n * {group * filters} + o) * {pixels} + h * {wide}"
                body.line(f"{output.type.name} *out = {output.name} + {at};")
                body.line(f"{row}({scratch}, rows, {packed} + o * {positions}, &end, o, out);")


@dataclass(frozen=True)
class Pair:
    """Two neighboring positions of the kernel, or its last one alone (``second`` is None)."""

    first: int
    second: int | None
    offset: int
    """The element that the first reads, from the element of the first position of the kernel."""


def _pairs(layout: Layout) -> list[Pair]:
    """Return the positions of the kernel in pairs along its rows."""
    (_, kernel_h, kernel_w), (_, dilation, _) = layout.window.kernel, layout.window.dilations
    return [
        Pair(
            row * kernel_w + column,
            row * kernel_w + column + 1 if column + 1 < kernel_w else None,
            row * dilation * layout.pitch + column,
        )
        for row in range(kernel_h)
        for column in range(0, kernel_w, 2)
    ]


def _row_function(cx: KernelContext, layout: Layout, ending: Ending) -> str:
    """Return the name of a function ``(plane, rows, weights, end, channel, out)``.

    ```
    const pair w0 = PAIR_OF(w[0], w[1]), w1 = PAIR_OF(w[2], 0);
    for (; rows > 0; --rows, x += 8)
        for (ptrdiff_t q = 0; q < 5; ++q, p += 1) {
            int32_t s = start;
            s = DOT2(PAIR_AT(p + 0), w0, s);
            s = DOT2(PAIR_AT(p + 2), w1, s);
            *out++ = finish_byte_int8(scale, s);
    ```
    """
    window, pairs = layout.window, _pairs(layout)
    (_, _, wide), (_, stride_h, stride_w) = window.output, window.strides
    out = Writer()
    weight = "int8_t" if layout.is_widened else "int16_t"
    out.line("static ONE_COPY void ROWS(const int16_t *x, ptrdiff_t rows,")
    out.line(f"    const {weight} *w, const ending *e, ptrdiff_t channel, {ending.result} *out)")
    with out.block(""):
        out.line(f"const scale_{ending.name} scale = scale_of_{ending.name}(e, channel);")
        out.line("const int32_t start = e->bias[channel];")
        for number, pair in enumerate(pairs):
            second = "0" if pair.second is None else f"w[{pair.second}]"
            out.line(f"const pair w{number} = PAIR_OF(w[{pair.first}], {second});")
        with out.block(f"for (; rows > 0; --rows, x += {stride_h * layout.pitch})"):
            out.line("const int16_t *p = x;")
            with out.block(f"for (ptrdiff_t q = 0; q < {wide}; ++q, p += {stride_w})"):
                out.line("int32_t s = start;")
                for number, pair in enumerate(pairs):
                    out.line(f"s = DOT2(PAIR_AT(p + {pair.offset}), w{number}, s);")
                out.line(f"*out++ = finish_{ending.name}(scale, s);")
    name = f"depthwise_{hashlib.sha256(out.text().encode()).hexdigest()[:8]}"
    header(cx, "dot2")
    return cx.call(name, out.text().replace("ROWS", name))
