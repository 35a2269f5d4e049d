"""Dilated convolutions by rectangles of results that read the same kernel positions.

With a kernel of 3 dilated by 18 over 28 columns, some results read its last two columns, then some
the middle one only, then some the first two. In each rectangle all products lie inside of the
image, so nothing is padded, copied or tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from smelt.native.kernels.convolution import pixel_tiles
from smelt.native.kernels.convolution.channel_blocks import Channels
from smelt.native.kernels.convolution.filter_panels import Filters, Panel, Source, panels
from smelt.native.kernels.convolution.inside import may_skip_padding
from smelt.native.kernels.convolution.parts import groups
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import ReductionLoop
from smelt.native.kernels.register_blocks import WIDE, EqualBlocks, by_registers, even_blocks

SHORTEST = 4
"""Fewer pixels take a tile as long as this many, because its sums wait for each other."""

WORTH = 0.9
"""Rectangles pay if they need at most this share of the products."""

MOST = 32
"""The most rectangles; each is one or a few loops."""


@dataclass(frozen=True, slots=True)
class Span:
    """Results from ``first`` to ``end`` of a dim that read kernel positions ``low`` to ``high``.

    Both positions are 0 if the results read only padding.
    """

    first: int
    end: int
    low: int
    high: int


def spans(window: Window, dim: int) -> list[Span]:
    """Return the results along a dim, split where the kernel positions that they read change."""
    size, kernel, step = window.input[dim], window.kernel[dim], window.dilations[dim]
    begin, stride = window.begin[dim], window.strides[dim]

    def taps_inside(result: int) -> tuple[int, int]:
        """Return first and end of the kernel positions whose pixel is inside of the image.

        ``result`` is the index of an output pixel. (0, 0) if no position is inside.
        """
        start = result * stride - begin
        inside = [tap for tap in range(kernel) if 0 <= start + tap * step < size]
        return (inside[0], inside[-1] + 1) if inside else (0, 0)

    spans_, first = [], 0
    for (low, high), results in groupby(range(window.output[dim]), taps_inside):
        end = first + len(list(results))
        spans_.append(Span(first, end, low, high))
        first = end
    return spans_


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support the instruction: wide padding and few, long spans that
    save products."""
    if not may_skip_padding(instance, window) or window.kernel[2] > pixel_tiles.UNROLLED:
        return False
    rows, columns = spans(window, 1), spans(window, 2)
    row_products = sum((span.end - span.first) * (span.high - span.low) for span in rows)
    column_products = sum(
        max(span.end - span.first, SHORTEST) * (span.high - span.low) for span in columns
    )
    all_products = window.pixels * window.kernel[1] * window.kernel[2]
    saves = row_products * column_products <= WORTH * all_products
    return len(rows) * len(columns) <= MOST and saves


def emit(cx: KernelContext, window: Window, weights: Filters) -> None:
    """Write all panels of filters, and for each all rectangles.

    Shards divide the panels if there are enough of one width, else the rows of a rectangle.
    """
    filters = channels_of(cx)[1]
    (_, height, width), (_, stride_h, stride_w), body = window.input, window.strides, cx.body
    source = Source("image", height * width, width, stride_h * width, stride_w)
    by_panel = any(count >= body.parts for _, _, count in panels(filters))
    with groups(cx, window):
        for first, panel_width, count in panels(filters):
            panel = Panel(window, source, weights, panel_width, first + panel_width * count)
            narrow, wide = pixel_tiles.shapes(panel_width)
            with (body.shared_loop if by_panel else body.loop)("o", panel.end, first, panel_width):
                for rows in spans(window, 1):
                    loop = body.loop if by_panel else body.shared_loop
                    with loop("h", rows.end, rows.first):
                        for columns in spans(window, 2):
                            size = columns.end - columns.first
                            blocks = even_blocks(size, narrow[0]), even_blocks(size, wide[0])
                            for when, parts in by_registers(body, *blocks):
                                vectors = (wide if when == WIDE else narrow)[1]
                                for part in parts:
                                    _emit_part(cx, panel, rows, columns, part, vectors, when)


def _emit_part(
    cx: KernelContext,
    panel: Panel,
    rows: Span,
    columns: Span,
    part: EqualBlocks,
    vectors: int,
    when: str,
) -> None:
    """Write tiles of the ``part`` of ``columns``, in output row ``h``, which lies in ``rows``."""
    window, source = panel.window, panel.source
    (_, stride_h, stride_w), (_, dilation_h, dilation_w) = window.strides, window.dilations
    kernel = window.kernel[2]
    first = columns.first + part.first
    row = f"(h * {stride_h} + {rows.low * dilation_h - window.begin[1]}) * {source.pitch}"
    column = f"q * {stride_w} + {columns.low * dilation_w - window.begin[2]}"
    kernel_rows = rows.high - rows.low if columns.high else 0
    start = f"image + ({row} + {column})" if kernel_rows else "image"
    arguments = [start, str((rows.low * kernel + columns.low) * panel.width), str(kernel_rows)]
    reduction_loop = _reduction_loop(window, panel.width, columns.high - columns.low)
    with cx.body.loop("q", first + part.length * part.count, first, part.length):
        channels, size = Channels("0", str(channels_of(cx)[0])), (part.length, vectors)
        pixel_tiles.emit_tile(cx, panel, channels, size, reduction_loop, arguments, "q", when)


def _reduction_loop(window: Window, width: int, columns: int) -> ReductionLoop:
    """Return the reduction loop over channels and ``tall`` rows and ``columns`` of the kernel.

    Weights are read from the ``first`` one on.
    """
    (_, kernel_h, kernel_w), step, stride = window.kernel, window.dilations[2], window.strides[2]
    return ReductionLoop(
        name=f"equal_taps{kernel_h}x{kernel_w}_{columns}",
        parameters=f"{pixel_tiles.PARAMETERS}, ptrdiff_t first, ptrdiff_t tall",
        heads=(
            "for (ptrdiff_t i = 0; i < cn; ++i)",
            "for (ptrdiff_t k = 0; k < tall; ++k)",
        ),
        steps=tuple(
            (f"row[@ * {stride} + {x * step}]", f"w + {x * width}") for x in range(max(1, columns))
        ),
        before="const float *row = a + i * plane + k * pitch;\n    "
        f"    const float *w = b + first + (i * {kernel_h} + k) * {kernel_w * width};",
    )
