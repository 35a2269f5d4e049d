"""QLinearConv and ConvInteger with constant weights: bytes in memory, 32-bit sums.

The rows of a micro-kernel are filters, its columns pixels. The image is copied a band at a time
with four channels interleaved. The copy includes the zero point, whose contribution is subtracted
from the initial sums.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.convolution.window import Window, refuse_window, window_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized import columns_as_channels, depthwise
from smelt.native.kernels.quantized.band_copy import Band, emit_copy
from smelt.native.kernels.quantized.conv_layout import Layout, in_quads
from smelt.native.kernels.quantized.conv_micro_kernel import ROWS, VECTORS, conv_micro_kernel
from smelt.native.kernels.quantized.dot4 import LEAD, MOST_ROWS, widen
from smelt.native.kernels.quantized.epilogue import Epilogue, epilogue_minus_zero_point
from smelt.native.kernels.quantized.operands import (
    input_positions,
    refuse_operands,
    refuse_sums,
    weights_minus_zero_point,
    zero_text,
)
from smelt.native.kernels.quantized.pairwise_safe import clamp_weights
from smelt.native.kernels.quantized.pairwise_safe import tables as excess_tables
from smelt.native.kernels.quantized.pixel_major import conv as pixel_major_conv
from smelt.native.kernels.quantized.pixel_major import depthwise as pixel_major_depthwise
from smelt.native.kernels.quantized.tables import int_table
from smelt.native.kernels.quantized.wide_micro_kernel import VECTORS as WIDE_VECTORS
from smelt.native.kernels.register_blocks import even_blocks, machine
from smelt.native.types import C_TYPES
from smelt.program.storage import Needs


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    reason = refuse_window(instance) or refuse_operands(instance)
    if reason:
        return reason
    window, group = window_of(instance), instance.int("group")
    if not (window.flat or window.pointwise):
        return "three spatial dims"
    filters, channels, *kernel = instance.shape(input_positions(instance).w)
    if group < 1 or filters % group or channels * group != instance.shape(0)[1]:
        return "weights that do not fit the group"
    if tuple(kernel) != instance.ints("kernel_shape") or 0 in kernel:
        return "a kernel_shape that is not that of the weights"
    return refuse_sums(instance, _weights(instance), (2, 3))


def _weights(instance: Instance) -> np.ndarray:
    """Return the weights minus their zero points: ``[group, filter, channel, kernel position]``."""
    array = weights_minus_zero_point(instance, 0)
    group = instance.int("group")
    positions = int(np.prod(array.shape[2:]))
    return array.reshape(group, array.shape[0] // group, array.shape[1], positions)


def _pixel_major(window: Window, weights: np.ndarray) -> ModuleType:
    """Return the module that computes the convolution with the channels of a pixel side by side."""
    supported = pixel_major_depthwise.supports(weights, window)
    return pixel_major_depthwise if supported else pixel_major_conv


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of the copied band, the packed weights and the tables."""
    window, weights = window_of(instance), _weights(instance)
    if machine().pixel_major:
        layer = _pixel_major(window, weights)
        return Needs(workspace=layer.scratch_bytes(instance, window, weights))
    if depthwise.supports(weights, window):
        return Needs(workspace=depthwise.layout_of(instance, window, weights).bytes)
    return Needs(workspace=Layout.of(window, weights).bytes)


@kernel(
    "QLinearConv",
    "ConvInteger",
    kinds=frozenset({"int"}),
    needs=_needs,
    refuse=_refuse,
    shared=True,
)
def quantized_conv(cx: KernelContext) -> None:
    """Write loops over bands of rows; in a band, over six filters at a time and all its pixels.

    ```
    for (ptrdiff_t h = 0; h < 14; h += 4) {
        … copy the band into the plane
        const ptrdiff_t left = 14 - h;
        const ptrdiff_t rows = left < 4 ? left : 4;
        for (ptrdiff_t o = 0; o < 12; o += 6) {
            … the weights, then the pixels
    ```
    """
    window, weights, body = window_of(cx), _weights(cx), cx.body
    if machine().pixel_major:
        _pixel_major(window, weights).emit(cx, window, weights)
        return
    if depthwise.supports(weights, window):
        depthwise.emit(cx, window, weights)
        return
    group, filters, channels, _ = weights.shape
    layout = Layout.of(window, weights)
    band = layout.band
    source, output = cx.input(0), cx.output()
    packed, scratch = _pack(cx, layout), cx.scratch(C_TYPES[ir.DataType.UINT8])
    plane = f"({scratch} + {LEAD})"
    flip = 128 if source.type.signed else 0
    sums = layout.weights.astype(np.int64).sum((2, 3)).reshape(-1)
    epilogue = epilogue_minus_zero_point(cx, sums, flip, f"scratch + {layout.sums_offset}")
    size = int(np.prod(window.input))
    _emit_steps(cx, layout, _position_table(cx, band), scratch)
    body.line(f"const unsigned char pad = (unsigned char)({zero_text(cx)} + {flip});")
    with body.loops(("n", "g"), (source.shape[0], group)):
        first = f"(n * {group} + g) * {channels * size}"
        body.line(f"const unsigned char *image = (const unsigned char *){source.name} + {first};")
        start = f"{output.name} + (n * {group} + g) * {filters * window.pixels}"
        body.line(f"{output.type.name} *out = {start};")
        has_enough_bands = band.height >= 2 * band.rows * body.parts
        band_loop, filter_loop = body.loop, body.shared_loop
        if has_enough_bands:  # then threads share the bands, otherwise the filters
            band_loop, filter_loop = filter_loop, band_loop
        with band_loop("h", band.height, step=band.rows):
            if layout.in_columns:
                columns_as_channels.emit_copy(
                    cx, band, plane, f"({scratch} + {layout.row_offset})", flip
                )
            else:
                emit_copy(cx, band, channels, plane, flip)
            body.line(f"const ptrdiff_t left = {band.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {band.rows} ? left : {band.rows};")
            for part in even_blocks(filters, ROWS):
                with filter_loop("o", part.end, part.first, part.length):
                    blocks = _emit_weights(cx, layout, packed, scratch, part.length)
                    _emit_pixels(cx, layout, (plane, *blocks), epilogue, part.length)


def _pack(cx: KernelContext, layout: Layout) -> str:
    """Return the name of the weights, packed by group of four channels, position, row, channel.

    Weights that do not fit bytes are packed as 16-bit halves.
    """
    group, filters, *_ = layout.weights.shape
    quads = in_quads(layout.weights).transpose(0, 2, 3, 1, 4)
    blocks = [
        quads[g, :, :, o : o + part.length]
        for g in range(group)
        for part in even_blocks(filters, ROWS)
        for o in part.starts()
    ]
    if layout.weights.dtype != np.int8:
        blocks = [_halves(block) for block in blocks]
    dtype = ir.DataType.INT8 if layout.weights.dtype == np.int8 else ir.DataType.INT16
    flat = np.concatenate([block.reshape(-1) for block in blocks])
    return cx.constant(np.pad(flat, (0, 4 * MOST_ROWS)), C_TYPES[dtype])


def _halves(block: np.ndarray) -> np.ndarray:
    """Return ``[quad, position, row, 4]`` reordered as ``[quad, position, half, row, 2]``."""
    return np.stack([block[..., half::2] for half in (0, 1)], 2)


def _emit_weights(
    cx: KernelContext, layout: Layout, packed: str, scratch: str, rows: int
) -> tuple[str, str]:
    """Declare the weights of ``rows`` filters from ``o`` on; return their two forms, as C.

    The first are bytes for int8 dot products, ``NULL`` if the weights do not fit. The second is the
    form that other instructions read.

    ```
    const int8_t *whole = p0 + (g * 4 + o) * 8;
    int16_t *apart = (int16_t *)(void *)(scratch + 864);
    if (!HAS_QUADS)
        widen_quads(whole, 2, 4, apart);
    ```
    """
    at, body = f"{packed} + (g * {layout.weights.shape[1]} + o) * {layout.depth}", cx.body
    if layout.weights.dtype != np.int8:
        return "NULL", at
    quads = layout.depth // 4
    body.line(f"const int8_t *whole = {at};")
    body.line(f"int16_t *apart = (int16_t *)(void *)({scratch} + {layout.weights_offset});")
    if layout.excess:
        arguments = f"whole, {quads}, {rows}, first, excess, (int8_t *)apart"
        body.line(f"const int32_t *first = first_excess + g * {layout.weights.shape[1]} + o;")
        body.line("#if PAIRWISE")
        body.line("if (!HAS_QUADS)")
        body.line(f"    {clamp_weights(cx)}({arguments});")
        body.line("#else")
    body.line("if (!HAS_QUADS)")
    body.line(f"    {widen(cx)}(whole, {quads}, {rows}, apart);")
    if layout.excess:
        body.line("#endif")
    return "whole", "apart"


def _emit_steps(cx: KernelContext, layout: Layout, offsets: str, scratch: str) -> None:
    """Declare the tables of ``pairwise_safe``, if weights are clamped.

    They are the excess of each filter, and ``steps``: the offset in the plane of each group of
    four.
    """
    if layout.excess is None:
        return
    first, numbers = excess_tables(cx, layout.excess)
    positions = layout.weights.shape[3]
    cx.body.line(f"const int32_t *first_excess = {first}, *excess = {numbers};")
    cx.body.line(f"int32_t *steps = (int32_t *)(void *)({scratch} + {layout.steps_offset});")
    with cx.body.loops(("c", "p"), (layout.quads, positions)):
        at = f"c * {4 * layout.band.plane} + {offsets}[p]"
        cx.body.line(f"steps[c * {positions} + p] = (int32_t)({at});")


def _position_offsets(band: Band) -> list[int]:
    """Return the byte offsets of the kernel positions in the plane.

    First come the offsets of the groups of four channels, for int8 dot products. Then come two
    offsets per position for 16-bit products, which read the even and the odd channels of a group.
    """
    group_offsets = [4 * pixel for pixel in band.pixel_offsets()]
    return [*group_offsets, *(offset + half for offset in group_offsets for half in (-1, 0))]


def _position_table(cx: KernelContext, band: Band) -> str:
    """Return the C name of the table of ``_position_offsets``."""
    return int_table(cx, "places", _position_offsets(band))


def _emit_pixels(
    cx: KernelContext,
    layout: Layout,
    operands: tuple[str, ...],
    epilogue: Epilogue,
    rows: int,
) -> None:
    """Write all pixels of the band for ``rows`` filters, ``VECTORS`` vectors of
    pixels at a time."""
    body, band, (_, filters, _, positions) = cx.body, layout.band, layout.weights.shape
    pairwise_safe = layout.excess is not None
    vectors = WIDE_VECTORS if epilogue.is_small else VECTORS
    tile = conv_micro_kernel(cx, rows, positions, epilogue, pairwise_safe)
    offsets = _position_table(cx, band)
    image, *weights = operands
    body.line(f"ptrdiff_t count = 0, at[{vectors}], to[{vectors}], wide[{vectors}];")
    if not epilogue.is_bytes:
        body.line(f"int32_t results[{rows * VECTORS} * SUMS];")
    loop = f"for (ptrdiff_t q = 0; q < {band.wide}; q += SUMS)"
    with body.loop("r", "rows"), body.block(loop):
        _collect_vectors(cx, band, vectors)
        arguments = (
            f"{layout.quads}, {4 * band.plane}, {offsets}, {image}, at, {', '.join(weights)}"
        )
        arguments += ", first, excess, steps" if pairwise_safe else ", NULL, NULL, NULL"
        pixels, channel = band.window.pixels, f"g * {filters} + o"
        if epilogue.is_bytes:
            ends = epilogue.arguments(channel, f"out + o * {pixels}", str(pixels))
            body.line(f"{tile}({arguments}, {ends});")
        else:
            body.line(f"{tile}({arguments}, {epilogue.bias} + {channel}, results);")
            with body.loop("m", rows), body.loop("v", "count"):
                sums = f"results + (m * {VECTORS} + v) * SUMS"
                to = f"out + (o + m) * {pixels} + to[v]"
                epilogue.store(body, to, cx.output().type.name, sums, "wide[v]", f"{channel} + m")
        body.line("count = 0;")


def _collect_vectors(cx: KernelContext, band: Band, vectors: int) -> None:
    """Write the addition of a vector of pixels to the list, and ``continue`` until it is full.

    ``at`` is the vector's offset in the plane, ``to`` that of its results, and ``wide`` its number
    of pixels. At the end of the band, empty vectors fill the list.
    """
    body = cx.body
    body.line(f"at[count] = 4 * (r * {band.pitch} + q);")
    body.line(f"to[count] = (h + r) * {band.wide} + q;")
    body.line(f"wide[count] = {band.wide} - q < SUMS ? {band.wide} - q : SUMS;")
    with body.block(f"if (++count < {vectors})"):
        body.line(f"if (r + 1 < rows || q + SUMS < {band.wide})")
        body.line("    continue;")
        body.line(f"for (ptrdiff_t v = count; v < {vectors}; ++v)")
        body.line("    at[v] = at[0], to[v] = to[0], wide[v] = 0;")
