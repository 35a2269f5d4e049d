"""QLinearConv and ConvInteger with constant weights: bytes in memory, sums of 32 bits.

Filters are rows of a tile and pixels its columns. The image is copied a band at a time as 16 bits
less the zero point, two channels beside each other; the weights of six filters are widened once a
band.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.convolution.window import Window, refuse_window, window_of
from smelt.native.kernels.even_parts import even_parts
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized import depthwise, neighbours
from smelt.native.kernels.quantized.finish import Finish, finish_of
from smelt.native.kernels.quantized.operands import (
    constant,
    less_zero_point,
    places_of,
    refuse_operands,
    refuse_sums,
    zero_text,
)
from smelt.native.kernels.quantized.plane import Band, band_of, emit_copy
from smelt.native.kernels.quantized.tables import int_table
from smelt.native.kernels.quantized.tile import ROWS, VECTORS, convolution_tile
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import is_empty
from smelt.program.storage import Needs


def _refuse(instance: Instance) -> str | None:
    reason = refuse_window(instance) or refuse_operands(instance)
    if reason:
        return reason
    window, group = window_of(instance), instance.int("group")
    if not (window.flat or window.pointwise):
        return "three spatial dims"
    filters, channels, *kernel = instance.shape(places_of(instance).w)
    if group < 1 or filters % group or channels * group != instance.shape(0)[1]:
        return "weights that do not fit the group"
    if tuple(kernel) != instance.ints("kernel_shape") or 0 in kernel:
        return "a kernel_shape that is not that of the weights"
    return refuse_sums(_weights(instance), constant(instance, places_of(instance).bias), (2, 3))


def _weights(instance: Instance) -> np.ndarray:
    """``[group, filter, channel, kernel position]``, less the zero points."""
    array = less_zero_point(instance, 0)
    group = instance.int("group")
    positions = int(np.prod(array.shape[2:]))
    return array.reshape(group, array.shape[0] // group, array.shape[1], positions)


def _needs(instance: Instance) -> Needs:
    window, weights = window_of(instance), _weights(instance)
    if _is_depthwise(instance, window, weights):
        return Needs(workspace=depthwise.workspace(window))
    if neighbours.takes(weights, window):
        window, weights = neighbours.paired(window, weights)
    band = band_of(window)
    pairs = -(-weights.shape[2] // 2)
    elements = band.elements(pairs)
    if weights.dtype == np.int8:
        elements += _block(weights)
    return Needs(workspace=2 * elements)


def _is_depthwise(instance: Instance, window: Window, weights: np.ndarray) -> bool:
    return depthwise.takes(weights, window, places_of(instance).scales is not None)


def _block(weights: np.ndarray) -> int:
    """Elements of the weights of the rows of a tile."""
    channels, positions = (int(size) for size in weights.shape[2:])
    return ROWS * 2 * -(-channels // 2) * positions


@kernel(
    "QLinearConv",
    "ConvInteger",
    kinds=frozenset({"int"}),
    needs=_needs,
    refuse=_refuse,
    shared=True,
)
def quantized_conv(cx: KernelContext) -> None:
    """Bands of rows; in each, all filters, six at a time, over all groups of pixels."""
    window, weights, body = window_of(cx), _weights(cx), cx.body
    if is_empty(cx.output_shape()):
        return
    if _is_depthwise(cx, window, weights):
        depthwise.emit(cx, window, weights, zero_text(cx))
        return
    group, filters, channels, _ = weights.shape
    in_pairs = neighbours.takes(weights, window)
    if in_pairs:
        window, weights = neighbours.paired(window, weights)
    band = band_of(window)
    x, y, zero = cx.input(0), cx.output(), zero_text(cx)
    packed = _pack(cx, weights)
    finish = finish_of(cx, group * filters)
    scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
    size = int(np.prod(window.input))
    body.line(f"const int16_t zero = (int16_t)({zero});")
    with body.loops(("n", "g"), (x.shape[0], group)):
        body.line(f"const {x.type.name} *image = {x.name} + (n * {group} + g) * {channels * size};")
        start = f"{y.name} + (n * {group} + g) * {filters * window.pixels}"
        body.line(f"{y.type.name} *out = {start};")
        by_band = band.height >= 2 * band.rows * body.parts
        band_loop, filter_loop = body.loop, body.shared_loop
        if by_band:
            band_loop, filter_loop = filter_loop, band_loop
        with band_loop("h", band.height, step=band.rows):
            if in_pairs:
                neighbours.emit_copy(cx, band, scratch)
            else:
                emit_copy(cx, band, channels, scratch)
            body.line(f"const ptrdiff_t left = {band.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {band.rows} ? left : {band.rows};")
            for part in even_parts(filters, ROWS):
                end = part.first + part.length * part.count
                with filter_loop("o", end, part.first, part.length):
                    block = _emit_weights(cx, weights, band, packed, scratch, part.length)
                    _emit_pixels(cx, band, weights, (scratch, block), finish, part.length)


def _pack(cx: KernelContext, weights: np.ndarray) -> str:
    """By rows of a tile: pair of channels, kernel position, row, channel of the pair."""
    group, filters, channels, positions = weights.shape
    even = np.pad(weights, ((0, 0), (0, 0), (0, channels % 2), (0, 0)))
    pairs = even.reshape(group, filters, -1, 2, positions).transpose(0, 2, 4, 1, 3)
    blocks = [
        pairs[g, :, :, o : o + part.length].reshape(-1)
        for g in range(group)
        for part in even_parts(filters, ROWS)
        for o in range(part.first, part.first + part.length * part.count, part.length)
    ]
    dtype = ir.DataType.INT8 if weights.dtype == np.int8 else ir.DataType.INT16
    return cx.constant(np.concatenate(blocks), C_TYPES[dtype])


def _emit_weights(
    cx: KernelContext, weights: np.ndarray, band: Band, packed: str, scratch: str, rows: int
) -> str:
    """The weights of ``rows`` filters from ``o`` on as 16 bits: a pointer to them."""
    depth = _block(weights) // ROWS
    at = f"{packed} + (g * {weights.shape[1]} + o) * {depth}"
    if weights.dtype != np.int8:
        return at
    cx.body.line(f"int16_t *block = {scratch} + {band.elements(-(-weights.shape[2] // 2))};")
    cx.body.line(f"const int8_t *from = {at};")
    with cx.body.loop("k", depth * rows):
        cx.body.line("block[k] = from[k];")
    return "block"


def _emit_pixels(
    cx: KernelContext,
    band: Band,
    weights: np.ndarray,
    operands: tuple[str, str],
    finish: Finish,
    rows: int,
) -> None:
    """All pixels of the band for ``rows`` filters, ``VECTORS`` groups of neighbours at a time."""
    body, pairs, positions = cx.body, -(-weights.shape[2] // 2), weights.shape[3]
    tile = convolution_tile(cx, rows, positions, finish.is_bytes)
    places = int_table(cx, "places", band.places())
    image, block = operands
    body.line(f"ptrdiff_t count = 0, at[{VECTORS}], to[{VECTORS}], wide[{VECTORS}];")
    if not finish.is_bytes:
        body.line(f"int32_t results[{rows * VECTORS} * SUMS];")
    loop = f"for (ptrdiff_t q = 0; q < {band.wide}; q += SUMS)"
    with body.loop("r", "rows"), body.block(loop):
        body.line(f"at[count] = 2 * (r * {band.pitch} + q);")
        body.line(f"to[count] = (h + r) * {band.wide} + q;")
        body.line(f"wide[count] = {band.wide} - q < SUMS ? {band.wide} - q : SUMS;")
        with body.block(f"if (++count < {VECTORS})"):
            body.line(f"if (r + 1 < rows || q + SUMS < {band.wide})")
            body.line("    continue;")
            body.line("at[1] = at[0], to[1] = to[0], wide[1] = 0;")
        given = f"{pairs}, {band.plane}, {places}, {image}, at, {block}"
        pixels = band.window.pixels
        if finish.is_bytes:
            out = f"out + o * {pixels}"
            ends = finish.arguments(f"g * {weights.shape[1]} + o", out, str(pixels))
            body.line(f"{tile}({given}, {ends});")
        else:
            body.line(f"{tile}({given}, results);")
            with body.loop("m", rows), body.loop("v", "count"):
                sums = f"results + (m * {VECTORS} + v) * SUMS"
                to = f"out + (o + m) * {pixels} + to[v]"
                body.line(f"memcpy({to}, {sums}, (size_t)wide[v] * sizeof(int32_t));")
        body.line("count = 0;")
