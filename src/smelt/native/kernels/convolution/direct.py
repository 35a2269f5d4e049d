"""Convolutions with constant weights: pixels are rows of a tile, filters columns.

Weights are laid out by panels of filters, in each by channel and position of the kernel. Pixels
are read where they lie, or, if the window reaches beyond the image, from a band of its rows
with the padding around them. So strides and dilations cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.inside import (
    INSIDE,
    declare_columns,
    declare_rows,
    inside_walk,
    skips,
)
from smelt.native.kernels.convolution.parts import (
    constant_bias,
    constant_weights,
    finish_by_pixel,
    groups,
    is_float,
    padded_rows,
)
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.even_parts import MORE_SUMS, WIDE, by_registers, even_parts
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_tile import SUMS, Beside, Finish, Tile, Walk

PANEL = 2 * MOST_LANES
FEWEST_FILTERS = 4
UNROLLED = 8
"""Columns of a kernel that are written one after the other; more are a loop."""

BAND_PIXELS = 96
"""Output pixels of a band at least: weights are read once a band."""


IDLE = 1.15
"""Lanes by pixels from which filters fill vectors better than the pixels of an image do."""


def fills(instance: Instance, window: Window) -> bool:
    """True if it is taken here, and vectors of pixels would be filled badly, as 7 x 7 of them."""
    vectors = -(-window.pixels // MOST_LANES)
    return takes(instance, window) and vectors * MOST_LANES > IDLE * window.pixels


def lies_well(instance: Instance, window: Window) -> bool:
    """True if it is taken here, and as fast as from gathered pixels: kernels see a pixel several
    times, and filters leave few lanes idle.
    """
    filters = channels_of(instance)[1]
    idle = -(-filters // MOST_LANES) * MOST_LANES / filters
    return takes(instance, window) and not window.pointwise and idle <= IDLE


def takes(instance: Instance, window: Window) -> bool:
    """One plane, constant weights, and filters enough to fill vectors."""
    filters = channels_of(instance)[1]
    known = constant_weights(instance) is not None
    return window.flat and known and is_float(instance) and filters >= FEWEST_FILTERS


@dataclass(frozen=True, slots=True)
class Band:
    """Output ``rows`` at a time, which see ``seen`` rows of ``pitch`` with their padding."""

    rows: int
    seen: int
    pitch: int


def band_of(window: Window) -> Band:
    """All bands see the same number of rows; the last may compute fewer."""
    (_, height, width), (_, kh, kw) = window.output, window.kernel
    (_, down, step), (_, dh, dw) = window.strides, window.dilations
    count = max(1, height * width // BAND_PIXELS)
    rows = -(-height // count)
    return Band(rows, (rows - 1) * down + (kh - 1) * dh + 1, (width - 1) * step + (kw - 1) * dw + 1)


def workspace(instance: Instance, window: Window) -> int:
    """The band, if there is padding."""
    band = band_of(window)
    return 4 * channels_of(instance)[0] * band.seen * band.pitch if window.padded else 0


def emit(cx: KernelContext, window: Window) -> None:
    """Bands of rows; in each, all panels of filters, and for each all groups of pixels."""
    bias, finish = _bias(cx), finish_by_pixel(cx)
    computed = cx.optional(2) if not bias else None
    if computed is not None:
        pointer = f"{computed.name} + g * {channels_of(cx)[1]}"
        finish = finish.after("{0} + {1}", Beside(pointer, 0, 1))
    weights = Filters(_pack(cx), bias, finish, skips(cx, window))
    band = band_of(window)
    height = window.output[1]
    bands = even_parts(height, band.rows)
    by_band = sum(part.count for part in bands) >= 2 * cx.body.parts
    by_band = by_band or channels_of(cx)[1] < PANEL * cx.body.parts
    loop = cx.body.shared_loop if by_band else cx.body.loop
    with groups(cx, window):
        for part in bands:
            end = part.first + part.length * part.count
            with loop("h", end, part.first, part.length):
                source = _source(cx, window, band, part.length)
                if weights.skipped:
                    declare_rows(cx.body, window, part.length)
                _emit_panels(cx, window, source, weights, part.length, by_panel=not by_band)


@dataclass(frozen=True, slots=True)
class Source:
    """Where pixels are read: a pointer, and the elements from channel to channel, row to row."""

    pointer: str
    plane: int
    pitch: int


def _source(cx: KernelContext, window: Window, band: Band, rows: int) -> Source:
    """The band from output row ``h`` on; the image itself if nothing has to be padded."""
    (_, height, width), (_, down, _) = window.input, window.strides
    if not window.padded:
        return Source(f"image + h * {down * width}", height * width, width)
    scratch = cx.scratch(cx.type(0))
    copy = padded_rows(cx, window, band.pitch)
    seen = band.seen - (band.rows - rows) * down
    plane = band.seen * band.pitch
    first = f"h * {down} - {window.begin[1]}"
    with cx.body.loop("i", channels_of(cx)[0]):
        cx.body.line(
            f"{copy}(image + i * {height * width}, {scratch} + i * {plane}, {first}, {seen});"
        )
    return Source(scratch, plane, band.pitch)


@dataclass(frozen=True, slots=True)
class Filters:
    """The laid out weights and bias ("" without), what becomes of the sums, and whether positions
    that see padding only are skipped."""

    packed: str
    bias: str
    finish: Finish
    skipped: bool


def _emit_panels(
    cx: KernelContext,
    window: Window,
    source: Source,
    weights: Filters,
    rows: int,
    *,
    by_panel: bool,
) -> None:
    """All panels over ``rows`` rows of pixels: ``next`` is where the next pixel is, in column q.

    Parts of a run share them ``by_panel``.
    """
    loop = cx.body.shared_loop if by_panel else cx.body.loop
    body, wide = cx.body, window.output[2]
    step = window.strides[2]
    turn = window.strides[1] * source.pitch - (wide - 1) * step
    pixels = rows * wide
    for first, width, count in panels(channels_of(cx)[1]):
        few = (SUMS // 2, 2) if width > PANEL // 4 else (SUMS, 1)
        more = (MORE_SUMS // 2, 2) if width > PANEL // 2 else (SUMS, 1)
        with loop("o", first + width * count, first, width):
            body.line("ptrdiff_t p = 0, q = 0, next = 0;")
            each = even_parts(pixels, few[0]), even_parts(pixels, more[0])
            for when, parts in by_registers(body, *each):
                vectors = (more if when == WIDE else few)[1]
                for part in parts:
                    with body.loop("t", part.count):
                        body.line(f"ptrdiff_t at[{part.length}];")
                        if weights.skipped:
                            declare_columns(body, window, part.length)
                        with body.loop("m", part.length):
                            body.line("at[m] = next;")
                            body.line(f"next += ++q == {wide} ? {turn} : {step};")
                            body.line(f"q = q == {wide} ? 0 : q;")
                        _emit_tile(cx, window, source, weights, (part.length, vectors, width), when)
                        body.line(f"p += {part.length};")


def _emit_tile(
    cx: KernelContext,
    window: Window,
    source: Source,
    weights: Filters,
    size: tuple[int, int, int],
    when: str,
) -> None:
    """The pixels ``p`` on by the panel ``o``, as many filters at a time as vectors have lanes."""
    channels, filters = channels_of(cx)
    total = sum(width * count for _, width, count in panels(filters))
    pixels, (rows, vectors, width) = window.pixels, size
    panel = f"g * {total} + o"
    here, lanes = f"h * {window.output[2]} + p", f"{vectors} * LANES"
    with cx.body.block(f"for (ptrdiff_t l = 0; l < {width}; l += {lanes})"):
        end = (
            str(width)
            if filters % width == 0
            else f"({filters} - o < {width} ? {filters} - o : {width})"
        )
        cx.body.line(f"const ptrdiff_t left = {end} - l;")
        b = f"{weights.packed} + ({panel}) * {channels * window.kernel[1] * window.kernel[2]} + l"
        row = source.pitch * window.dilations[1]
        arguments = [str(channels), str(source.plane), str(row), source.pointer, "at", b]
        if weights.skipped:
            arguments += INSIDE
        start = f"{weights.bias} + {panel} + l" if weights.bias else ""
        finish = weights.finish.at(here, "o + l")
        walk = inside_walk(window, width) if weights.skipped else _walk(window, width)
        tile = Tile(rows, vectors, walk, "column" if start else "", finish, pixels, when)
        stored = f"0, left < {lanes} ? left : {lanes}"
        tile.call(cx, arguments, f"out + (o + l) * {pixels} + {here}", 1, stored, start)


def panels(filters: int) -> list[tuple[int, int, int]]:
    """``(first filter, width, count)``: whole panels, then a half and a quarter for the rest."""
    half, quarter = PANEL // 2, PANEL // 4
    whole, rest = divmod(filters, PANEL)
    if rest > half + quarter:
        whole, rest = whole + 1, 0
    counts = (whole, int(rest > quarter), int(0 < rest <= quarter or rest > half))
    found, first = [], 0
    for width, count in zip((PANEL, half, quarter), counts, strict=True):
        if count:
            found.append((first, width, count))
        first += width * count
    return found


def _walk(window: Window, width: int) -> Walk:
    """Channels, rows of the kernel, and its columns one after the other."""
    (_, kh, kw), dw = window.kernel, window.dilations[2]
    heads: tuple[str, ...] = (
        "for (ptrdiff_t i = 0; i < cn; ++i)",
        f"for (ptrdiff_t k = 0; k < {kh}; ++k)",
    )
    before = "const ptrdiff_t o = i * plane + k * pitch;"
    steps = tuple((f"a@[o + {x * dw}]", f"b + {x * width}") for x in range(kw))
    after = f"b += {kw * width};"
    if kw > UNROLLED:
        heads += (f"for (ptrdiff_t x = 0; x < {kw}; ++x)",)
        before = f"const ptrdiff_t o = i * plane + k * pitch + x * {dw};"
        steps, after = (("a@[o]", "b"),), f"b += {width};"
    return Walk(
        name=f"conv{kh}x{kw}",
        parameters="ptrdiff_t cn, ptrdiff_t plane, ptrdiff_t pitch, const float *restrict a, "
        "const ptrdiff_t *restrict at, const float *restrict b",
        heads=heads,
        steps=steps,
        before=before,
        after=after,
        row_start="const float *a@ = a + at[@];",
    )


def _pack(cx: KernelContext) -> str:
    """Panel by panel ``[channel, kernel position][filter]``, then room for a vector."""
    weights = constant_weights(cx)
    assert weights is not None
    group, filters, channels, window = weights.shape
    blocks = []
    for g in range(group):
        for first, width, count in panels(filters):
            for o in range(first, first + width * count, width):
                panel = np.zeros((channels, window, width), np.float32)
                part = weights[g, o : o + width]
                panel[:, :, : part.shape[0]] = part.transpose(1, 2, 0)
                blocks.append(panel.reshape(-1))
    blocks.append(np.zeros(2 * MOST_LANES, np.float32))
    return cx.constant(np.concatenate(blocks), cx.type(1))


def _bias(cx: KernelContext) -> str:
    """The bias by panels, "" if there is none or it is computed."""
    bias = constant_bias(cx)
    if bias is None:
        return ""
    filters = bias.shape[1]
    total = sum(width * count for _, width, count in panels(filters))
    padded = np.zeros(bias.shape[0] * total + 2 * MOST_LANES, np.float32)
    padded[: -2 * MOST_LANES].reshape(-1, total)[:, :filters] = bias
    return cx.constant(padded, cx.type(0))
