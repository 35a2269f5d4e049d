"""Depthwise convolutions of bytes: neighbouring positions of the kernel are a pair.

Read from an even pixel on, pairs of pixels give the sums of even pixels; read from the next one on,
those of odd pixels. Rows follow each other at the pitch of the padded plane; what is computed
between them is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.finish import finish_of
from smelt.native.kernels.quantized.lanes import MOST_SUMS
from smelt.native.kernels.quantized.plane import Band, band_of
from smelt.native.types import C_TYPES

MOST_POSITIONS = 64
"""Positions of the kernel at most: each pair is two lines of C."""

TOGETHER = 4096
"""Bytes of planes that are copied before they are computed."""

BAND_PIXELS = 2048
"""Output pixels of a band, about."""

COPY = """static inline void copy_row_T(const T *image, ptrdiff_t at,
    int16_t *restrict to, ptrdiff_t low,
    ptrdiff_t high, ptrdiff_t pitch, ptrdiff_t step,
    int16_t zero)
{
    ptrdiff_t q;
    for (q = 0; q < low; ++q)
        to[q] = 0;
    if (step == 1)
        for (q = low; q < high; ++q)
            to[q] = (int16_t)(image[at + q] - zero);
    else if (step == 2)
        for (q = low; q < high; ++q)
            to[q] = (int16_t)(image[at + q * 2] - zero);
    else
        for (q = low; q < high; ++q)
            to[q] = (int16_t)(image[at + q * step] - zero);
    for (q = high; q < pitch; ++q)
        to[q] = 0;
}
"""

STORE = """static inline sums near_bytes(sums s, int32_t bias, float factor, const int32_t *last)
{
    const reals scaled = REAL(s + bias) * factor;
    const sums near = NEAREST(HELD(scaled, (float)-last[0], (float)(255 - last[0]))) + last[0];
    return near ^ (last[1] & 255);
}
"""


def takes(weights: np.ndarray, window: Window, requantized: bool) -> bool:
    """One channel a group, on one plane, with bytes as the result."""
    group, _, channels, positions = weights.shape
    single = channels == 1 and group > 1
    return single and window.flat and requantized and positions <= MOST_POSITIONS


@dataclass(frozen=True)
class Taps:
    """Pairs of positions by where they read, and the weights of each filter, 0 where is none."""

    places: list[int]
    weights: np.ndarray


def taps_of(weights: np.ndarray, band: Band) -> Taps:
    """``[filter, pair, 2]``: positions that read neighbours share a pair."""
    flat = weights.reshape(-1, weights.shape[3])
    position = {place: number for number, place in enumerate(band.places())}
    left, places, columns = sorted(position), [], []
    while left:
        place = left.pop(0)
        pair = [flat[:, position[place]], np.zeros_like(flat[:, 0])]
        if left and left[0] == place + 1:
            pair[1] = flat[:, position[left.pop(0)]]
        places.append(place)
        columns.append(np.stack(pair, 1))
    columns += [np.zeros_like(columns[0])] * (-len(columns) % 4)
    return Taps(places, np.stack(columns, 1))


def band(window: Window) -> Band:
    """The rows that are computed at a time."""
    return band_of(window, BAND_PIXELS)


def workspace(window: Window) -> int:
    """Bytes of the padded plane and of the results of a band."""
    size = band(window)
    planes = 2 * _together(size) * _plane(size)
    return planes + size.rows * size.pitch + 4 * MOST_SUMS


def _plane(size: Band) -> int:
    return size.plane + 4 * MOST_SUMS


def _together(size: Band) -> int:
    """How many planes are copied before they are computed: what is stored in small pieces and
    loaded at once in large ones has to reach the cache before."""
    return max(1, TOGETHER // (2 * _plane(size)))


def emit(cx: KernelContext, window: Window, weights: np.ndarray, zero: str) -> None:
    """Planes of the output; those that they see are copied once, some at a time."""
    size, body, (group, filters, _, _) = band(window), cx.body, weights.shape
    taps = taps_of(weights, size)
    x, y = cx.input(0), cx.output()
    narrow = ir.DataType.INT8 if weights.dtype == np.int8 else ir.DataType.INT16
    packed = cx.constant(taps.weights.reshape(-1), C_TYPES[narrow])
    finish = finish_of(cx, group * filters)
    scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
    near = cx.call("near_bytes", STORE)
    count = taps.weights.shape[1] * 2
    body.line(f"const int16_t zero = (int16_t)({zero});")
    most, plane = min(_together(size), group), _plane(size)
    body.line(f"unsigned char *results = (unsigned char *)({scratch} + {most * plane});")
    with body.loop("n", x.shape[0]), body.shared_loop("first", group, step=most):
        last = f"first + {most} < {group} ? first + {most} : {group}"
        body.line(f"const ptrdiff_t end = {last};")
        inside = window.input[1] * window.input[2]
        with body.loop("h", size.height, step=size.rows):
            with body.loop("c", "end", "first"):
                body.line(f"const {x.type.name} *image = {x.name} + (n * {group} + c) * {inside};")
                body.line(f"int16_t *plane = {scratch} + (c - first) * {plane};")
                _emit_copy(cx, size, "plane")
            body.line(f"const ptrdiff_t left = {size.height} - h;")
            body.line(f"const ptrdiff_t rows = left < {size.rows} ? left : {size.rows};")
            with body.loop("o", f"end * {filters}", f"first * {filters}"):
                body.line(f"const int16_t *plane = {scratch} + (o / {filters} - first) * {plane};")
                start = f"{y.name} + (n * {group * filters} + o) * {window.pixels}"
                body.line(f"{y.type.name} *out = {start} + h * {size.wide};")
                body.line(f"int16_t k[{count}];")
                with body.loop("i", count):
                    body.line(f"k[i] = {packed}[o * {count} + i];")
                given = f"{finish.bias}[o], {finish.factors}[o], last"
                _emit_sums(cx, size, taps, "plane", f"{near}(SUM, {given})")
                with body.loop("r", "rows"):
                    to, from_ = f"out + r * {size.wide}", f"results + r * {size.pitch}"
                    body.line(f"memcpy({to}, {from_}, {size.wide});")


def _emit_copy(cx: KernelContext, size: Band, to: str) -> None:
    window, body, type_ = size.window, cx.body, cx.type(0).name
    (_, height, width), (_, down, step) = window.input, window.strides
    text = COPY.replace("_T(", f"_{type_}(").replace("T *", f"{type_} *")
    copy = cx.call(f"copy_row_{type_}", text)
    for number, (top, left) in enumerate(size.phases):
        first, low, high = size.columns(left)
        with body.loop("r", size.seen):
            body.line(f"const ptrdiff_t y = (h + r) * {down} + ({top - window.begin[1]});")
            row = f"{to} + ({number * size.seen} + r) * {size.pitch}"
            sizes = f"{low}, {high}, {size.pitch}, {step}"
            at = f"y * {width} + ({first})"
            body.line(f"if (y < 0 || y >= {height})")
            body.line(f"    memset({row}, 0, {2 * size.pitch});")
            body.line("else")
            body.line(f"    {copy}(image, {at}, {row}, {sizes}, zero);")


def _emit_sums(cx: KernelContext, size: Band, taps: Taps, scratch: str, near: str) -> None:
    body = cx.body
    head = f"for (ptrdiff_t p = 0; p < rows * {size.pitch}; p += 2 * SUMS)"
    with body.block(head):
        body.line("sums even = { 0 }, odd = { 0 };")
        for i, place in enumerate(taps.places):
            at = f"{scratch} + p + {place}"
            body.line(f"even += MULTIPLIED(*(const pairs *)({at}), SAME_PAIR(k + {2 * i}));")
            body.line(f"odd += MULTIPLIED(*(const pairs *)({at} + 1), SAME_PAIR(k + {2 * i}));")
        even, odd = (near.replace("SUM", name) for name in ("even", "odd"))
        body.line(f"store_in_turn(results + p, {even}, {odd});")
