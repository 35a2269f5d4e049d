"""Depthwise convolutions of bytes: neighbouring positions of the kernel are a quad.

Read from each of four neighbouring pixels on, quads of pixels give the sums of every fourth pixel.
Rows follow each other at the pitch of the padded plane; what is computed between them is dropped.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.finish import finish_of
from smelt.native.kernels.quantized.lanes import MOST_SUMS
from smelt.native.kernels.quantized.plane import Band, band_of, copy_quads
from smelt.native.kernels.quantized.quads import LEAD, MOST_ROWS, widen
from smelt.native.types import C_TYPES
from smelt.native.writer import Writer

MOST_POSITIONS = 64
"""Positions of the kernel at most: each quad is four lines of C."""

TOGETHER = 4096
"""Bytes of planes that are copied before they are computed."""

BAND_PIXELS = 2048
"""Output pixels of a band, about."""

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

STORE = """static IF_CALLED inline sums near_bytes(sums s, int32_t bias, float factor,
    const int32_t *last)
{
    const reals scaled = REAL(s + bias) * factor;
    const sums near = NEAREST(HELD(scaled, (float)-last[0], (float)(255 - last[0]))) + last[0];
    return near ^ (last[1] & 255);
}
static IF_CALLED inline void store_four(unsigned char *p, sums a, sums b, sums c, sums d)
{
#if SUMS > 1
    *(sums *)p = a | b << 8 | c << 16 | d << 24;
#else
    p[0] = (unsigned char)a, p[1] = (unsigned char)b;
    p[2] = (unsigned char)c, p[3] = (unsigned char)d;
#endif
}
"""


def takes(weights: np.ndarray, window: Window, requantized: bool) -> bool:
    """One channel a group, on one plane, with bytes as the result."""
    group, _, channels, positions = weights.shape
    single = channels == 1 and group > 1
    return single and window.flat and requantized and positions <= MOST_POSITIONS


@dataclass(frozen=True)
class Taps:
    """Quads of positions by where they read, how many there are in each, and the weights of each
    filter, 0 where is none: ``[filter, quad, 4]``."""

    places: list[int]
    counts: list[int]
    weights: np.ndarray


def taps_of(weights: np.ndarray, band: Band) -> Taps:
    """Positions that read neighbours share a quad."""
    flat = weights.reshape(-1, weights.shape[3])
    position = {place: number for number, place in enumerate(band.places())}
    left, places, counts, columns = sorted(position), [], [], []
    while left:
        place = left[0]
        near = [each for each in left[:4] if each < place + 4]
        left = left[len(near) :]
        quad = np.zeros((len(flat), 4), flat.dtype)
        for each in near:
            quad[:, each - place] = flat[:, position[each]]
        places.append(place)
        counts.append(near[-1] - place + 1)
        columns.append(quad)
    return Taps(places, counts, np.stack(columns, 1))


def band(window: Window) -> Band:
    """The rows that are computed at a time."""
    return band_of(window, BAND_PIXELS)


def workspace(window: Window) -> int:
    """Bytes of the padded planes and of the results of a band."""
    size = band(window)
    return LEAD + _together(size) * _plane(size) + size.rows * size.pitch + 4 * MOST_SUMS


def _plane(size: Band) -> int:
    """Bytes of a plane, and what vectors read past it."""
    return -(-(size.plane + 8 * MOST_SUMS) // 32) * 32


def _together(size: Band) -> int:
    """How many planes are copied before they are computed: what is stored in small pieces and
    loaded at once in large ones has to reach the cache before."""
    return max(1, TOGETHER // _plane(size))


def emit(cx: KernelContext, window: Window, weights: np.ndarray, zero: int) -> None:
    """Planes of the output; those that they see are copied once, some at a time."""
    size, body, (group, filters, _, _) = band(window), cx.body, weights.shape
    taps = taps_of(weights, size)
    x, y = cx.input(0), cx.output()
    flip = 128 if x.type.signed else 0
    sums = weights.astype(np.int64).sum((2, 3)).reshape(-1)
    finish = finish_of(cx, group * filters, -(zero + flip) * sums)
    packed, scratch = _pack(cx, taps), cx.scratch(C_TYPES[ir.DataType.UINT8])
    tile = _tile(cx, taps)
    most, plane = min(_together(size), group), _plane(size)
    at_once = size.rows == size.height
    body.line(f"unsigned char *planes = {scratch} + {LEAD};")
    body.line(f"unsigned char *results = planes + {most * plane};")
    if at_once:
        body.line(f"memset(planes, {zero + flip}, {most * plane});")
    with body.loop("n", x.shape[0]), body.shared_loop("first", group, step=most):
        last = f"first + {most} < {group} ? first + {most} : {group}"
        body.line(f"const ptrdiff_t end = {last};")
        inside = window.input[1] * window.input[2]
        with body.loop("h", size.height, step=size.rows):
            with body.loop("c", "end", "first"):
                at = f"(n * {group} + c) * {inside}"
                body.line(f"const unsigned char *image = (const unsigned char *){x.name} + {at};")
                body.line(f"unsigned char *plane = planes + (c - first) * {plane};")
                _emit_copy(cx, size, flip, None if at_once else zero + flip)
            body.line(f"const ptrdiff_t left = {size.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {size.rows} ? left : {size.rows};")
            with body.loop("o", f"end * {filters}", f"first * {filters}"):
                body.line(
                    f"const unsigned char *plane = planes + (o / {filters} - first) * {plane};"
                )
                start = f"{y.name} + (n * {group * filters} + o) * {window.pixels}"
                body.line(f"{y.type.name} *out = {start} + h * {size.wide};")
                given = f"plane, rows * {size.pitch}, {packed} + o * {taps.weights[0].size}"
                ends = f"{finish.bias}[o], {finish.factors}[o], last, results"
                body.line(f"{tile}({given}, {ends});")
                with body.loop("r", "rows"):
                    to, from_ = f"out + r * {size.wide}", f"results + r * {size.pitch}"
                    body.line(f"memcpy({to}, {from_}, {size.wide});")


def _pack(cx: KernelContext, taps: Taps) -> str:
    """Quads of each filter; what does not fit bytes with those at even places first."""
    weights, type_ = taps.weights, ir.DataType.INT8
    if weights.dtype != np.int8:
        weights, type_ = weights[..., [0, 2, 1, 3]], ir.DataType.INT16
    return cx.constant(np.pad(weights.reshape(-1), (0, 4 * MOST_ROWS)), C_TYPES[type_])


def _emit_copy(cx: KernelContext, size: Band, flip: int, pad: int | None) -> None:
    """Rows of ``image`` into ``plane``, which holds the padding if ``pad`` is None."""
    window, body = size.window, cx.body
    copy_quads(cx)
    copy = cx.call("copy_row", COPY)
    (_, height, width), (_, down, step) = window.input, window.strides
    for number, (phase, left) in enumerate(size.phases):
        first, low, high = size.columns(left)
        top = phase - window.begin[1]
        begin, end = 0, size.seen
        if pad is None:
            begin = min(max(0, -(top // down)), end)
            end = max(begin, min(end, (height - 1 - top) // down + 1))
        with body.loop("r", end, begin):
            body.line(f"const ptrdiff_t y = (h + r) * {down} + ({top});")
            body.line(f"unsigned char *row = plane + ({number * size.seen} + r) * {size.pitch};")
            if pad is not None:
                body.line(f"memset(row, {pad}, {size.pitch});")
                body.line(f"if (y >= 0 && y < {height})")
            from_ = f"image + y * {width} + ({first + low * step})"
            body.line(f"    {copy}({from_}, {high - low}, {step}, {flip}, row + {low});")


def _tile(cx: KernelContext, taps: Taps) -> str:
    """A function ``(plane, n, weights, bias, factor, last, results)``: n pixels of a filter."""
    narrow = taps.weights.dtype == np.int8
    type_ = "int8_t" if narrow else "int16_t"
    head = f"(const unsigned char *plane, ptrdiff_t n, const {type_} *w,"
    rest = "    int32_t bias, float factor, const int32_t *last, unsigned char *results)"
    out, widen_quads = Writer(), widen(cx)
    cx.call("near_bytes", STORE)
    if narrow:
        out.line("#if QUADS")
        out.line(f"static APART WITH_QUADS void TILE_whole{head}")
        out.line(rest)
        with out.block(""):
            _emit_sums(out, taps, halves=False)
        out.line("#endif")
    out.line(f"static APART void TILE{head}")
    out.line(rest)
    with out.block(""):
        if narrow:
            out.line("#if QUADS")
            with out.block("if (HAS_QUADS)"):
                out.line("TILE_whole(plane, n, w, bias, factor, last, results);")
                out.line("return;")
            out.line("#endif")
            out.line(f"int16_t k[{4 * len(taps.places) + 4 * MOST_ROWS}];")
            out.line(f"{widen_quads}(w, {len(taps.places)}, 1, k);")
        else:
            out.line("const int16_t *k = w;")
        _emit_sums(out, taps, halves=True)
    name = f"depthwise_{hashlib.sha256(out.text().encode()).hexdigest()[:8]}"
    return cx.call(name, out.text().replace("TILE", name))


def _emit_sums(out: Writer, taps: Taps, *, halves: bool) -> None:
    with out.block("for (ptrdiff_t p = 0; p < n; p += 4 * SUMS)"):
        out.line("sums s0 = { 0 }, s1 = { 0 }, s2 = { 0 }, s3 = { 0 };")
        for j, (place, count) in enumerate(zip(taps.places, taps.counts, strict=True)):
            if not halves:
                for i in range(4):
                    read = f"*(const sums *)(plane + p + {place + i})"
                    out.line(f"ADD_QUADS(s{i}, {read}, same_word(w + {4 * j}));")
                continue
            for i in range(4 + (count > 1)):
                at = place + i - 1
                out.line(f"const pairs v{j}_{i} = SECONDS(plane + p + {at});")
            for i in range(4):
                out.line(f"ADD_HALVES(s{i}, v{j}_{i}, SAME_PAIR(k + {4 * j}));")
                if count > 1:
                    out.line(f"ADD_HALVES(s{i}, v{j}_{i + 1}, SAME_PAIR(k + {4 * j + 2}));")
        near = (f"near_bytes(s{i}, bias, factor, last)" for i in range(4))
        out.line(f"store_four(results + p, {', '.join(near)});")
