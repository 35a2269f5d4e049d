"""Loops over a band with micro-kernels whose rows are pixels and whose columns are filters.

A micro-kernel addresses its pixels in one of two ways. With pointers, the loop computes an offset
for each pixel, so a tile may be any consecutive pixels. With constant offsets from the first pixel,
pointers need no registers, but a tile must lie in one output row or consist of whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from smelt.native.kernels.convolution.channel_blocks import Channels
from smelt.native.kernels.convolution.filter_panels import PANEL, Filters, Panel, Source, panels
from smelt.native.kernels.convolution.inside import INSIDE, declare_columns, inside_loop
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import Epilogue, plus
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import LINE, ReductionLoop
from smelt.native.kernels.register_blocks import (
    MORE_SUMS,
    WIDE,
    EqualBlocks,
    by_registers,
    even_blocks,
    machine,
)
from smelt.native.kernels.vector_micro_kernel import SUMS, MicroKernel

MOST_PIXELS = 14
"""The pixels of a tile with 32 registers, which divides rows of 7, 14, 28 and 56."""

UNROLLED = 8
"""The most kernel columns that are unrolled; more are a loop."""

FETCHED = 1 << 16
"""The fewest weights whose next panel is prefetched; fewer stay in cache from run to run."""


def emit(
    cx: KernelContext,
    window: Window,
    source: Source,
    weights: Filters,
    rows: int,
    *,
    by_panel: bool,
) -> None:
    """Write all panels over ``rows`` rows of pixels; with ``by_panel``, shards divide the panels.

    Pixels are at constant offsets with 32 registers (``WIDE``), unless kernel positions in the
    padding are skipped; else they have pointers.
    """
    loop, body = cx.body.shared_loop if by_panel else cx.body.loop, cx.body
    pixels = rows * window.output[2]
    for first, width, count in panels(channels_of(cx)[1]):
        panel = Panel(window, source, weights, width, first + width * count)
        narrow, wide = shapes(width)
        with loop("o", panel.end, first, width), _channels(cx, panel, pixels) as channels:
            if weights.skipped:
                narrow_blocks, wide_blocks = (
                    even_blocks(pixels, most) for most, _ in (narrow, wide)
                )
                for when, parts in by_registers(body, narrow_blocks, wide_blocks):
                    vectors = (wide if when == WIDE else narrow)[1]
                    _emit_with_pointers(cx, panel, channels, parts, vectors, when)
                continue
            if machine().pixels is not None:
                _emit_at_offsets(cx, panel, channels, rows, narrow[1], "")
                continue
            body.line(f"#if {WIDE}")
            _emit_at_offsets(cx, panel, channels, rows, wide[1], WIDE)
            body.line("#else")
            parts = even_blocks(pixels, narrow[0])
            _emit_with_pointers(cx, panel, channels, parts, narrow[1], f"!({WIDE})")
            body.line("#endif")


def shapes(width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return ``(pixels, vectors)`` of a micro-kernel, with 16 and then with 32 registers.

    ``width`` is that of the panel.
    """
    narrow = (SUMS // 2, 2) if width > PANEL // 4 else (SUMS, 1)
    wide = (MORE_SUMS // 2, 2) if width > PANEL // 2 else (SUMS, 1)
    return narrow, wide


@contextmanager
def _channels(cx: KernelContext, panel: Panel, pixels: int) -> Iterator[Channels]:
    """Yield all channels, or a block of them inside of a loop; partial sums start as the bias."""
    every, block, partial_sums = channels_of(cx)[0], panel.source.block, panel.source.partial_sums
    if not block or panel.width < PANEL or panel.weights.skipped:
        yield Channels("0", str(every))
        return
    body, bias = cx.body, panel.bias(cx)
    with body.loops(("p", "l"), (pixels, PANEL)):
        body.line(f"({partial_sums})[p * {PANEL} + l] = {f'({bias})[l]' if bias else '0'};")
    with body.loop("c", every, step=block):
        body.line(f"const ptrdiff_t cn = {every} - c < {block} ? {every} - c : {block};")
        yield Channels("c", "cn", partial_sums)


def _emit_with_pointers(
    cx: KernelContext,
    panel: Panel,
    channels: Channels,
    parts: Sequence[EqualBlocks],
    vectors: int,
    when: str,
) -> None:
    """Write micro-kernels of consecutive pixels, each pixel with its own pointer.

    In the C, ``at`` holds the offsets of the pixels of a tile, ``next`` is the offset of the pixel
    after them, and ``q`` the column of that pixel.
    """
    body, window, source = cx.body, panel.window, panel.source
    out_width = window.output[2]
    row_step = source.down - (out_width - 1) * source.step
    body.line("ptrdiff_t p = 0, q = 0, next = 0;")
    for part in parts:
        with body.loop("t", part.count):
            body.line(f"ptrdiff_t at[{part.length}];")
            if panel.weights.skipped:
                declare_columns(body, window, part.length)
            with body.loop("m", part.length):
                body.line("at[m] = next;")
                body.line(f"next += ++q == {out_width} ? {row_step} : {source.step};")
                body.line(f"q = q == {out_width} ? 0 : q;")
            reduction_loop = listed_loop(window, panel.width)
            arguments = [plus(source.pointer, channels.first, source.plane), "at"]
            if panel.weights.skipped:
                reduction_loop, arguments = inside_loop(window, panel.width), [*arguments, *INSIDE]
            size = (part.length, vectors)
            emit_tile(cx, panel, channels, size, reduction_loop, arguments, "p", when)
            body.line(f"p += {part.length};")


def _emit_at_offsets(
    cx: KernelContext, panel: Panel, channels: Channels, rows: int, vectors: int, when: str
) -> None:
    """Write micro-kernels of pixels at constant offsets: part of an output row, or whole rows."""
    body, window, source = cx.body, panel.window, panel.source
    out_width, most = window.output[2], machine().pixels or MOST_PIXELS
    row_blocks = even_blocks(rows, max(1, most // out_width))
    column_blocks = even_blocks(out_width, most)
    tiles = sum(part.count for part in row_blocks) * sum(part.count for part in column_blocks)
    fetch = _fetch(cx, panel, tiles)
    if fetch and channels.partial_sums:
        following = plus(_weights(cx, panel, channels), channels.count, panel.elements(1))
        body.line(f"const float *ahead = {following};")
    elif fetch:
        following = f"o + {panel.width} < {panel.end} ? {panel.elements(channels_of(cx)[0])} : 0"
        body.line(f"const float *ahead = {_weights(cx, panel, channels)} + ({following});")
    for y in row_blocks:
        for x in column_blocks:
            with (
                body.loop("r", y.end, y.first, y.length),
                body.loop("q", x.end, x.first, x.length),
            ):
                offsets = tuple(
                    i * source.down + j * source.step
                    for i in range(y.length)
                    for j in range(x.length)
                )
                first = plus(source.pointer, channels.first, source.plane)
                first += f" + r * {source.down} + q * {source.step}"
                reduction_loop = placed_loop(window, panel.width, offsets, fetch)
                arguments = [first, *(["ahead"] if fetch else [])]
                size, pixel = (len(offsets), vectors), f"r * {out_width} + q"
                emit_tile(cx, panel, channels, size, reduction_loop, arguments, pixel, when)
                if fetch:
                    body.line(f"ahead += {channels.count} * {fetch * _inner_iterations(window)};")


def _inner_iterations(window: Window) -> int:
    """Return the innermost iterations of a micro-kernel per channel."""
    (_, kernel_h, kernel_w) = window.kernel
    return kernel_h * (kernel_w if kernel_w > UNROLLED else 1)


def _fetch(cx: KernelContext, panel: Panel, tiles: int) -> int:
    """Return the elements of the next panel that each innermost iteration prefetches.

    All ``tiles`` together prefetch the panel. 0 if there are few weights.
    """
    (channels, filters), window = channels_of(cx), panel.window
    if panel.width < PANEL or filters * channels * window.kernel[1] * window.kernel[2] < FETCHED:
        return 0
    return -(-panel.elements(1) // (tiles * _inner_iterations(window)))


def _weights(cx: KernelContext, panel: Panel, block: Channels) -> str:
    """Return the C address of the panel from filter ``o`` on, at the first channel of ``block``."""
    channels, filters = channels_of(cx)
    total = sum(width * count for _, width, count in panels(filters))
    terms = channels * panel.window.kernel[1] * panel.window.kernel[2]
    first_channel = f"{panel.weights.packed} + (g * {total} + o) * {terms}"
    return plus(first_channel, block.first, panel.elements(1))


def emit_tile(
    cx: KernelContext,
    panel: Panel,
    channels: Channels,
    size: tuple[int, int],
    reduction_loop: ReductionLoop,
    pixel_arguments: Sequence[str],
    first: str,
    when: str,
) -> None:
    """Write the call of a micro-kernel, inside of a loop over the filters of the panel.

    ``size`` is its number of pixels, from pixel ``first`` of the band on, and of vectors of
    filters. ``pixel_arguments`` are the C arguments after the weights.
    """
    window, source, pixels = panel.window, panel.source, panel.window.pixels
    (rows, vectors), pixel = size, f"h * {window.output[2]} + {first}"
    lanes = f"{vectors} * LANES"
    with cx.body.block(f"for (ptrdiff_t l = 0; l < {panel.width}; l += {lanes})"):
        cx.body.line(f"const ptrdiff_t left = {panel.filter_count(cx)} - l;")
        row = source.pitch * window.dilations[1]
        arguments = [channels.count, str(source.plane), str(row)]
        arguments += [f"{_weights(cx, panel, channels)} + l", *pixel_arguments]
        bias = panel.bias(cx)
        kind, start = ("column", f"{bias} + l") if bias else ("", "")
        epilogue = panel.weights.epilogue.at(pixel, "o + l")
        tile = MicroKernel(rows, vectors, reduction_loop, kind, epilogue, pixels, when)
        if channels.partial_sums:
            tile = replace(tile, start="each", pitch=PANEL)
            start = f"{channels.partial_sums} + ({first}) * {PANEL} + l"
            without_epilogue = replace(tile, epilogue=Epilogue(), column=1)
            cx.body.line(f"if (c + cn < {channels_of(cx)[0]})")
            without_epilogue.call(cx, arguments, start, PANEL, f"0, {lanes}", start)
            cx.body.line("else")
        stored = f"0, left < {lanes} ? left : {lanes}"
        tile.call(cx, arguments, f"out + (o + l) * {pixels} + {pixel}", 1, stored, start)


PARAMETERS = "ptrdiff_t cn, ptrdiff_t plane, ptrdiff_t pitch, const float *restrict b, "
PARAMETERS += "const float *restrict a"
"""Channels, strides between channels and between kernel rows, the weights, and the image from the
first pixel on or from the origin of ``at``."""


def listed_loop(window: Window, width: int) -> ReductionLoop:
    """Return the reduction loop over channels, kernel rows and unrolled kernel columns.

    ``at[row]`` is the offset of the pixel of each row of the micro-kernel.
    """
    (_, kernel_h, kernel_w), dw = window.kernel, window.dilations[2]
    heads, before, steps, after = _loops(kernel_h, kernel_w, width)
    return ReductionLoop(
        name=f"conv{kernel_h}x{kernel_w}",
        parameters=f"{PARAMETERS}, const ptrdiff_t *restrict at",
        heads=heads,
        steps=tuple((f"a@[o + {x * dw}]" if x else "a@[o]", b) for x, b in steps),
        before=f"const ptrdiff_t o = {before.format(dw)};",
        after=after,
        row_start="const float *a@ = a + at[@];",
    )


def placed_loop(window: Window, width: int, offsets: tuple[int, ...], fetch: int) -> ReductionLoop:
    """Return ``listed_loop`` for pixels at the constant ``offsets`` from the first pixel."""
    (_, kernel_h, kernel_w), dw = window.kernel, window.dilations[2]
    heads, before, steps, after = _loops(kernel_h, kernel_w, width)
    fetched = [f"FETCH(ahead + {line});" for line in range(0, fetch, LINE)]
    if fetch:
        after = " ".join([after, *fetched, f"ahead += {fetch};"])
    return ReductionLoop(
        name=f"placed{kernel_h}x{kernel_w}",
        parameters=PARAMETERS + (", const float *ahead" if fetch else ""),
        heads=heads,
        steps=tuple((f"row[@ + {x * dw}]" if x else "row[@]", b) for x, b in steps),
        before=f"const float *row = a + {before.format(dw)};",
        after=after,
        offsets=offsets,
    )


def _loops(
    kh: int, kw: int, width: int
) -> tuple[tuple[str, ...], str, tuple[tuple[int, str], ...], str]:
    """Return the C of the loops of a reduction loop.

    These are the loop heads, the offset of a step's first pixel, the column and the weights of each
    step, and the statement after the steps.
    """
    heads: tuple[str, ...] = (
        "for (ptrdiff_t i = 0; i < cn; ++i)",
        f"for (ptrdiff_t k = 0; k < {kh}; ++k)",
    )
    before = "i * plane + k * pitch"
    if kw > UNROLLED:
        heads += (f"for (ptrdiff_t x = 0; x < {kw}; ++x)",)
        return heads, before + " + x * {}", ((0, "b"),), f"b += {width};"
    steps = tuple((x, f"b + {x * width}") for x in range(kw))
    return heads, before, steps, f"b += {kw * width};"
