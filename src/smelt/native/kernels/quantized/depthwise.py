"""Depthwise convolutions of bytes: int8 dot products of four neighboring kernel positions.

A vector of groups of four pixels gives the sums of every fourth pixel; four such vectors, read one
pixel apart, give all. Rows are computed as one row at the pitch of the padded plane; the values in
the gaps are dropped. Results are bytes, or the sums themselves.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.emit.writer import Writer
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.band_copy import Band, band_of, copy_quads
from smelt.native.kernels.quantized.dot4 import LEAD, MOST_ROWS, widen
from smelt.native.kernels.quantized.epilogue import SPARE, Epilogue, epilogue_minus_zero_point
from smelt.native.kernels.quantized.fixed_point import is_fixed
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS
from smelt.native.kernels.quantized.interleaved_stores import AS_SUMS, Stored, as_bytes
from smelt.native.kernels.quantized.operands import requantization, zero_text
from smelt.native.types import C_TYPES

MOST_POSITIONS = 64
"""The most positions of the kernel; each group of four is four lines of C."""

TOGETHER = 4096
"""The bytes of planes that are copied before any is computed."""

BAND_PIXELS = 2048
"""The approximate number of output pixels of a band."""

COPY = """static IF_CALLED inline void copy_row(const unsigned char *from, ptrdiff_t n,
    ptrdiff_t step, unsigned char flip, unsigned char *restrict to)
{
    ptrdiff_t q = 0;
#if SUMS > 1
    if (step == 2) {
        for (; q + 16 <= n; q += 16)
            *(bytes16 *)(to + q) = some_bytes(from + 2 * q, 2, 16) ^ flip;
        if (n >= 16 && q < n) {
            *(bytes16 *)(to + n - 16) = some_bytes(from + 2 * (n - 16), 2, 16) ^ flip;
            return;
        }
    }
#endif
    if (step == 1 && flip == 0)
        memcpy(to, from, (size_t)n);
    else
        for (; q < n; ++q)
            to[q] = (unsigned char)(from[q * step] ^ flip);
}
"""


def supports(weights: np.ndarray, window: Window) -> bool:
    """True if each group has one channel and the convolution is 2-D."""
    group, _, channels, positions = weights.shape
    return channels == 1 and group > 1 and window.flat and positions <= MOST_POSITIONS


@dataclass(frozen=True)
class Taps:
    """Groups of four kernel positions: the pixel that each reads, its number of positions, the
    weights.

    ``weights`` are ``[filter, group, 4]``, 0 where there is no position.
    """

    first_pixels: list[int]
    counts: list[int]
    weights: np.ndarray


def taps_of(weights: np.ndarray, band: Band) -> Taps:
    """Return the kernel positions in groups of four that read neighboring pixels."""
    flat = weights.reshape(-1, weights.shape[3])
    position = {first: number for number, first in enumerate(band.pixel_offsets())}
    remaining, first_pixels, counts, columns = sorted(position), [], [], []
    while remaining:
        first = remaining[0]
        same_quad = [each for each in remaining[:4] if each < first + 4]
        remaining = remaining[len(same_quad) :]
        quad = np.zeros((len(flat), 4), flat.dtype)
        for each in same_quad:
            quad[:, each - first] = flat[:, position[each]]
        first_pixels.append(first)
        counts.append(same_quad[-1] - first + 1)
        columns.append(quad)
    return Taps(first_pixels, counts, np.stack(columns, 1))


def band(window: Window) -> Band:
    """Return the band of rows that are computed at a time."""
    return band_of(window, BAND_PIXELS)


@dataclass(frozen=True)
class Layout:
    """The layout of the scratch space in bytes: planes, results of a band, initial sums."""

    band: Band
    stored: Stored
    filters: int

    @property
    def results_offset(self) -> int:
        """The offset of the results of a band."""
        return LEAD + _planes_at_once(self.band) * _plane(self.band)

    @property
    def sums_offset(self) -> int:
        """The offset of the initial sums."""
        pixels = self.band.rows * self.band.pitch + 4 * MOST_SUMS
        return self.results_offset + -(-pixels * self.stored.size // 4) * 4

    @property
    def bytes(self) -> int:
        """The size of the scratch space in bytes."""
        return self.sums_offset + 4 * (self.filters + SPARE)


def layout_of(instance: Instance, window: Window, weights: np.ndarray) -> Layout:
    """Return the layout for weights ``[group, filter, 1, position]``."""
    filters = int(np.prod(weights.shape[:2]))
    scaled = None if is_fixed(instance) else requantization(instance, filters)
    stored = AS_SUMS if scaled is None else as_bytes(scaled)
    return Layout(band(window), stored, filters)


def _plane(size: Band) -> int:
    """Return the bytes of a plane, and of what vectors read past it."""
    return -(-(size.plane + 8 * MOST_SUMS) // 32) * 32


def _planes_at_once(size: Band) -> int:
    """Return the number of planes that are copied before one is computed.

    Loading a plane right after storing it would wait until the narrow stores are in cache.
    """
    return max(1, TOGETHER // _plane(size))


def emit(cx: KernelContext, window: Window, weights: np.ndarray) -> None:
    """Write a loop over output planes, which first copies some input planes at a time."""
    body, (group, filters, _, _) = cx.body, weights.shape
    layout = layout_of(cx, window, weights)
    size, stored = layout.band, layout.stored
    taps = taps_of(weights, size)
    x, output = cx.input(0), cx.output()
    flip = 128 if x.type.signed else 0
    sums = weights.astype(np.int64).sum((2, 3)).reshape(-1)
    epilogue = epilogue_minus_zero_point(cx, sums, flip, f"scratch + {layout.sums_offset}")
    packed, scratch = _pack(cx, taps), cx.scratch(C_TYPES[ir.DataType.UINT8])
    tile = _tile(cx, taps, stored)
    most, plane = min(_planes_at_once(size), group), _plane(size)
    at_once = size.rows == size.height
    body.line(f"const int pad = {zero_text(cx)} + {flip};")
    body.line(f"unsigned char *planes = {scratch} + {LEAD};")
    buffer = f"({stored.type} *)(void *)({scratch} + {layout.results_offset})"
    body.line(f"{stored.type} *results = {buffer};")
    if at_once:
        body.line(f"memset(planes, pad, {most * plane});")
    with body.loop("n", x.shape[0]), body.shared_loop("first", group, step=most):
        last = f"first + {most} < {group} ? first + {most} : {group}"
        body.line(f"const ptrdiff_t end = {last};")
        inside = window.input[1] * window.input[2]
        with body.loop("h", size.height, step=size.rows):
            with body.loop("c", "end", "first"):
                at = f"(n * {group} + c) * {inside}"
                body.line(f"const unsigned char *image = (const unsigned char *){x.name} + {at};")
                body.line(f"unsigned char *plane = planes + (c - first) * {plane};")
                _emit_copy(cx, size, flip, padded=at_once)
            body.line(f"const ptrdiff_t left = {size.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {size.rows} ? left : {size.rows};")
            with body.loop("o", f"end * {filters}", f"first * {filters}"):
                plane_at = f"planes + (o / {filters} - first) * {plane}"
                body.line(f"const unsigned char *plane = {plane_at};")
                start = f"{output.name} + (n * {group * filters} + o) * {window.pixels}"
                body.line(f"{output.type.name} *out = {start} + h * {size.wide};")
                weights_at = f"{packed} + o * {taps.weights[0].size}"
                ends = [*epilogue.elements("o"), *(["last"] if epilogue.is_bytes else [])]
                arguments = f"plane, rows * {size.pitch}, {weights_at}, {', '.join(ends)}"
                body.line(f"{tile}({arguments}, results);")
                _emit_results(cx, size, epilogue)


def _emit_results(cx: KernelContext, size: Band, epilogue: Epilogue) -> None:
    """Write the rows of plane ``o``, without the values in the gaps between them."""
    body = cx.body
    with body.loop("r", "rows"):
        to, from_ = f"out + r * {size.wide}", f"results + r * {size.pitch}"
        if epilogue.is_bytes:
            body.line(f"memcpy({to}, {from_}, {size.wide});")
        else:
            epilogue.store(body, to, cx.output().type.name, from_, str(size.wide), "o")


def _pack(cx: KernelContext, taps: Taps) -> str:
    """Return the name of the packed weights.

    As 16 bits, the elements at even positions of each group of four come first.
    """
    weights, type_ = taps.weights, ir.DataType.INT8
    if weights.dtype != np.int8:
        weights, type_ = weights[..., [0, 2, 1, 3]], ir.DataType.INT16
    return cx.constant(np.pad(weights.reshape(-1), (0, 4 * MOST_ROWS)), C_TYPES[type_])


def _emit_copy(cx: KernelContext, size: Band, flip: int, *, padded: bool) -> None:
    """Write the copy of rows of ``image`` into ``plane``; if ``padded``, ``pad`` surrounds them
    already.
    """
    window, body = size.window, cx.body
    copy_quads(cx)
    copy = cx.call("copy_row", COPY)
    (_, height, width), (_, stride_h, stride_w) = window.input, window.strides
    for number, (phase, left) in enumerate(size.phases):
        first, low, high = size.columns(left)
        top = phase - window.begin[1]
        begin, end = 0, size.rows_read
        if padded:
            begin = min(max(0, -(top // stride_h)), end)
            end = max(begin, min(end, (height - 1 - top) // stride_h + 1))
        with body.loop("r", end, begin):
            body.line(f"const ptrdiff_t y = (h + r) * {stride_h} + ({top});")
            row_start = f"({number * size.rows_read} + r) * {size.pitch}"
            body.line(f"unsigned char *row = plane + {row_start};")
            if not padded:
                body.line(f"memset(row, pad, {size.pitch});")
                body.line(f"if (y >= 0 && y < {height})")
            from_ = f"image + y * {width} + ({first + low * stride_w})"
            body.line(f"    {copy}({from_}, {high - low}, {stride_w}, {flip}, row + {low});")


def _tile(cx: KernelContext, taps: Taps, stored: Stored) -> str:
    """Return the name of a micro-kernel ``(plane, n, weights, bias, ...,
    results)`` for n pixels."""
    narrow = taps.weights.dtype == np.int8
    type_ = "int8_t" if narrow else "int16_t"
    head = f"(const unsigned char *plane, ptrdiff_t n, const {type_} *w,"
    last_parameters = f"    {stored.parameters}, {stored.type} *results)"
    declarations = stored.parameters.split(",")  # such as "const float *factors"
    names = ", ".join(each.rpartition(" ")[2].strip("*") for each in declarations)
    out, widen_quads = Writer(), widen(cx)
    cx.call(stored.name, stored.text)
    if narrow:
        out.line("#if QUADS")
        out.line(f"static NO_INLINE WITH_QUADS void TILE_whole{head}")
        out.line(last_parameters)
        with out.block(""):
            _emit_sums(out, taps, stored, halves=False)
        out.line("#endif")
    out.line(f"static NO_INLINE void TILE{head}")
    out.line(last_parameters)
    with out.block(""):
        if narrow:
            out.line("#if QUADS")
            with out.block("if (HAS_QUADS)"):
                out.line(f"TILE_whole(plane, n, w, {names}, results);")
                out.line("return;")
            out.line("#endif")
            out.line(f"int16_t k[{4 * len(taps.first_pixels) + 4 * MOST_ROWS}];")
            out.line(f"{widen_quads}(w, {len(taps.first_pixels)}, 1, k);")
        else:
            out.line("const int16_t *k = w;")
        _emit_sums(out, taps, stored, halves=True)
    name = f"depthwise_{hashlib.sha256(out.text().encode()).hexdigest()[:8]}"
    return cx.call(name, out.text().replace("TILE", name))


def _emit_sums(out: Writer, taps: Taps, stored: Stored, *, halves: bool) -> None:
    """Write a loop over pixels; ``halves`` multiplies 16-bit integers instead of
    int8 dot products.

    ``ADD_QUADS(s1, plane + p + 1, same_word(w + 0)); ... store_four_sums(results + p, s0, ...);``
    """
    out.line("const sums zero = { 0 };")
    out.line("const sums start = zero + bias;")
    with out.block("for (ptrdiff_t p = 0; p < n; p += 4 * SUMS)"):
        out.line("sums s0 = start, s1 = start, s2 = start, s3 = start;")
        for j, (offset, count) in enumerate(zip(taps.first_pixels, taps.counts, strict=True)):
            if not halves:
                for i in range(4):
                    read = f"(sums)*(const sums_anywhere *)(const void *)(plane + p + {offset + i})"
                    out.line(f"ADD_QUADS(s{i}, {read}, same_word(w + {4 * j}));")
                continue
            for i in range(4 + (count > 1)):
                at = offset + i - 1
                out.line(f"const pairs v{j}_{i} = SECONDS(plane + p + {at});")
            for i in range(4):
                out.line(f"ADD_HALVES(s{i}, v{j}_{i}, SAME_PAIR(k + {4 * j}));")
                if count > 1:
                    out.line(f"ADD_HALVES(s{i}, v{j}_{i + 1}, SAME_PAIR(k + {4 * j + 2}));")
        out.line(stored.call.format("s0, s1, s2, s3"))
