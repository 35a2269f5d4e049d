"""Convolutions with constant weights of images with run-time sizes.

As in ``direct``, the micro-kernel's rows are pixels and its columns filters, so no image size is
part of the code: a tile is passed the offsets of its pixels. Blocks of output pixels are as large
as the padded copy of their input allows, which is planned for all sizes within bounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from smelt.native.kernels.convolution import direct, pixel_tiles, pointwise
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.channel_blocks import Channels
from smelt.native.kernels.convolution.filter_panels import Panel, Source, panels
from smelt.native.kernels.convolution.padded_copy import padded_plane
from smelt.native.kernels.convolution.parts import groups
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.register_blocks import WIDE
from smelt.native.kernels.vector import MOST_LANES
from smelt.program.run_sizes import Size, highest, lowest, smaller

COPIED = 1 << 16
"""The largest copy, in elements, which stays in cache; more if the fewest columns need it."""

FEWEST_COLUMNS = 16
"""The fewest output columns of a block, in an image as wide."""


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support a convolution: ``direct`` would with static sizes."""
    return direct.supports(instance, window)


def is_runtime_sized(window: Window) -> bool:
    """True if an image size is run-time sized."""
    return any(isinstance(size, Size) for size in (*window.input, *window.output))


def _is_padded(window: Window) -> bool:
    """True if the window can reach beyond the image."""
    return any(highest(pad) > 0 for pad in (*window.begin, *window.end))


def _as_row(window: Window) -> Window:
    """Return ``window`` with all pixels in one row if it is pointwise, with strides of 1 and
    without padding; else ``window`` itself, which ``emit`` compares by identity."""
    if _is_padded(window) or window.kernel != (1, 1, 1) or window.strides != (1, 1, 1):
        return window
    return replace(window, input=(1, 1, window.plane), output=(1, 1, window.pixels))


def _covered_size(window: Window, dim: int, count: int) -> int:
    """Return the rows or columns that ``count`` neighboring results read."""
    return (count - 1) * window.strides[dim] + _reach(window, dim)


def _reach(window: Window, dim: int) -> int:
    """Return the rows or columns that one window covers: 5 for a kernel of 3 with dilation 2."""
    return (window.kernel[dim] - 1) * window.dilations[dim] + 1


def _most_columns(instance: Instance, window: Window) -> int:
    """Return the most output columns of a block, for any image size."""
    most_input_columns = COPIED // (channels_of(instance)[0] * _reach(window, 1))
    columns = (most_input_columns - _reach(window, 2)) // window.strides[2] + 1
    return min(highest(window.output[2]), max(columns, FEWEST_COLUMNS))


def _most_copied(instance: Instance, window: Window) -> int:
    """Return the most elements of the copy: ``COPIED``, or one output row if that is larger."""
    channels, columns = channels_of(instance)[0], _most_columns(instance, window)
    input_columns = _covered_size(window, 2, columns)
    one_row = channels * _reach(window, 1) * input_columns
    input_rows = _covered_size(window, 1, highest(window.output[1]))
    return max(one_row, min(COPIED, channels * input_rows * input_columns))


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of the copy and a vector, if the window reaches beyond the image."""
    return 4 * (_most_copied(instance, window) + MOST_LANES) if _is_padded(window) else 0


def emit(cx: KernelContext, window: Window) -> None:
    """Write the convolution by blocks of pixels.

    A pointwise convolution multiplies the image itself if a run has enough pixels for the widest
    tile; C tests this unless the bounds of the sizes decide it.
    """
    row = _as_row(window)
    if row is window:
        _emit(cx, window)
        return
    if lowest(window.pixels) >= pointwise.PANEL:
        pointwise.emit(cx, window)
        return
    with cx.body.block(f"if ({window.pixels} >= {pointwise.PANEL})"):
        pointwise.emit(cx, window)
    with cx.body.block("else"):
        _emit(cx, row)


def _emit(cx: KernelContext, window: Window) -> None:
    """Write blocks of pixels; in each, all panels of filters, and for each all tiles of pixels."""
    weights, body = direct.filters_of(cx), cx.body
    (_, out_height, out_width), columns = window.output, _most_columns(cx, window)
    with groups(cx, window):
        body.line(f"const ptrdiff_t most = {smaller(out_width, columns)};")
        if lowest(out_width) <= 0:
            body.line("if (most <= 0)")
            body.line("    continue;")
        _emit_band(cx, window)
        with body.loop("h", out_height, step="band"), body.loop("w", out_width, step="most"):
            body.line(f"const ptrdiff_t rows = {out_height} - h < band ? {out_height} - h : band;")
            body.line(f"const ptrdiff_t wide = {out_width} - w < most ? {out_width} - w : most;")
            source = _source(cx, window)
            for first, width, count in panels(channels_of(cx)[1]):
                panel = Panel(window, source, weights, width, first + width * count)
                with body.loop("o", panel.end, first, width):
                    _emit_panel(cx, panel)


def _emit_band(cx: KernelContext, window: Window) -> None:
    """Declare ``band``, the output rows of a block: as in ``direct``, as far as the copy has room.

    ``most``, a C variable, is the number of output columns of a block. Blocks narrower than the
    image have one row.

    ```
    ptrdiff_t band = (511 + most) / most;
    const ptrdiff_t fit = (65536 / (8 * ((most - 1) * 1 + 3)) - 3) / 1 + 1;
    band = band < fit ? band : fit;
    band = most < W ? 1 : band;
    ```
    """
    body, channels, stride = cx.body, channels_of(cx)[0], window.strides[1]
    body.line(f"ptrdiff_t band = ({direct.band_pixels(cx, window) - 1} + most) / most;")
    if _is_padded(window):
        pitch = f"((most - 1) * {window.strides[2]} + {_reach(window, 2)})"
        spare_rows = f"{_most_copied(cx, window)} / ({channels} * {pitch}) - {_reach(window, 1)}"
        body.line(f"const ptrdiff_t fit = ({spare_rows}) / {stride} + 1;")
        body.line("band = band < fit ? band : fit;")
    if highest(window.output[2]) > _most_columns(cx, window):
        body.line(f"band = most < {window.output[2]} ? 1 : band;")


def _source(cx: KernelContext, window: Window) -> Source:
    """Return the block's input: a padded copy, or the image itself."""
    (_, height, width), (_, stride_h, stride_w) = window.input, window.strides
    body, first, left = cx.body, f"h * {stride_h}", f"w * {stride_w}"
    if not _is_padded(window):
        pointer = f"image + {first} * {width} + {left}"
        return Source(pointer, height * width, width, stride_h * width, stride_w)
    body.line(f"const ptrdiff_t pitch = (wide - 1) * {stride_w} + {_reach(window, 2)};")
    body.line(f"const ptrdiff_t rows_read = (rows - 1) * {stride_h} + {_reach(window, 1)};")
    copy, scratch = padded_plane(cx), cx.scratch(cx.type(0))
    with body.loop("i", channels_of(cx)[0]):
        arguments = (
            f"image + i * {height * width}, {scratch} + i * rows_read * pitch, {height}, {width}"
        )
        top = f"{first} - {window.begin[1]}, {left} - {window.begin[2]}"
        body.line(f"{copy}({arguments}, {top}, rows_read, 1, pitch, 1);")
    pitch = cast(int, Size.named("pitch", 1, _most_copied(cx, window)))
    plane = cast(int, Size.named("(rows_read * pitch)", 1, _most_copied(cx, window)))
    return Source(scratch, plane, pitch, pitch * stride_h, stride_w)


def _emit_panel(cx: KernelContext, panel: Panel) -> None:
    """Write the block's pixels times panel ``o``, tile by tile."""
    body, source = cx.body, panel.source
    body.line("ptrdiff_t p = 0, q = 0, next = 0;")
    body.line(f"const ptrdiff_t row_step = {source.down} - (wide - 1) * {source.step};")
    narrow, wide = pixel_tiles.shapes(panel.width)
    for when, (longest, vectors) in ((WIDE, wide), (f"!({WIDE})", narrow)):
        body.line(f"#if {when}")
        for length in _lengths(longest):
            with body.block(f"for (; p + {length} <= rows * wide; p += {length})"):
                _emit_tile(cx, panel, (length, vectors), when, is_longest=length == longest)
        body.line("#endif")


def _lengths(longest: int) -> tuple[int, ...]:
    """Return the numbers of pixels per tile, each half of the one before: (6, 3, 1) for 6.

    A tile of the next length takes the pixels that tiles of the length before leave.
    """
    lengths = [longest]
    while lengths[-1] > 1:
        lengths.append(lengths[-1] // 2)
    return tuple(lengths)


def _emit_tile(
    cx: KernelContext, panel: Panel, size: tuple[int, int], when: str, *, is_longest: bool
) -> None:
    """Write the tile of pixels from ``p`` on: column ``q`` of a row, with inputs from ``next`` on.

    The longest tile has a second form, with constant offsets, for pixels in the same row.
    """
    body, window, source, (length, _) = cx.body, panel.window, panel.source, size
    channels, first = Channels("0", str(channels_of(cx)[0])), "w + p"
    if is_longest:
        offsets = tuple(i * source.step for i in range(length))
        reduction_loop = pixel_tiles.placed_loop(window, panel.width, offsets, 0)
        with body.block(f"if (q + {length} < wide)"):
            arguments = [f"{source.pointer} + next"]
            pixel_tiles.emit_tile(cx, panel, channels, size, reduction_loop, arguments, first, when)
            body.line(f"q += {length};")
            body.line(f"next += {length * source.step};")
            body.line("continue;")
    body.line(f"ptrdiff_t at[{length}];")
    with body.loop("m", length):
        body.line("at[m] = next;")
        body.line(f"next += ++q == wide ? row_step : {source.step};")
        body.line("q = q == wide ? 0 : q;")
    reduction_loop = pixel_tiles.listed_loop(window, panel.width)
    pixel_tiles.emit_tile(
        cx, panel, channels, size, reduction_loop, [source.pointer, "at"], first, when
    )


ALGORITHM = Algorithm(emit, workspace, supports, epilogue=True)
