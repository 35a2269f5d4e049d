"""Dilated convolutions, rectangle by rectangle of results that see the same kernel positions.

A kernel of 3 dilated by 18 over 28 columns has results that see its last two columns, then some
that see the middle one only, then some that see the first two. In each rectangle all of what is
multiplied lies inside the image, so that nothing is padded, copied or asked on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from smelt.native.kernels.convolution import pixel_tiles
from smelt.native.kernels.convolution.channel_blocks import Channels
from smelt.native.kernels.convolution.filter_panels import Filters, Panel, Source, panels
from smelt.native.kernels.convolution.inside import skips
from smelt.native.kernels.convolution.parts import groups
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.even_parts import WIDE, Part, by_registers, even_parts
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.tile_walk import Walk

SHORTEST = 4
"""Pixels that a tile takes as long for as for fewer: its sums wait for each other."""

WORTH = 0.9
"""Part of the products from which they are cut."""

MOST = 32
"""Rectangles at most, each of which is a loop or a few in the text."""


@dataclass(frozen=True, slots=True)
class Span:
    """Results from ``first`` to ``end`` of a dim, which see kernel positions ``low`` to ``high``;
    both are 0 if these see padding only."""

    first: int
    end: int
    low: int
    high: int


def spans(window: Window, dim: int) -> list[Span]:
    """The results along a dim, cut where they see other positions than those before."""
    size, kernel, step = window.input[dim], window.kernel[dim], window.dilations[dim]
    begin, stride = window.begin[dim], window.strides[dim]

    def seen(result: int) -> tuple[int, int]:
        start = result * stride - begin
        inside = [k for k in range(kernel) if 0 <= start + k * step < size]
        return (inside[0], inside[-1] + 1) if inside else (0, 0)

    found, first = [], 0
    for (low, high), results in groupby(range(window.output[dim]), seen):
        end = first + len(list(results))
        found.append(Span(first, end, low, high))
        first = end
    return found


def takes(instance: Instance, window: Window) -> bool:
    """Wide padding, few spans, and these so long that tiles of them save products."""
    if not skips(instance, window) or window.kernel[2] > pixel_tiles.UNROLLED:
        return False
    rows, columns = spans(window, 1), spans(window, 2)
    down = sum((one.end - one.first) * (one.high - one.low) for one in rows)
    across = sum(max(one.end - one.first, SHORTEST) * (one.high - one.low) for one in columns)
    whole = window.pixels * window.kernel[1] * window.kernel[2]
    return len(rows) * len(columns) <= MOST and down * across <= WORTH * whole


def emit(cx: KernelContext, window: Window, weights: Filters) -> None:
    """All panels of filters, and for each all rectangles. Parts of a run share panels or rows."""
    filters = channels_of(cx)[1]
    (_, height, width), (_, down, step), body = window.input, window.strides, cx.body
    source = Source("image", height * width, width, down * width, step)
    by_panel = any(count >= body.parts for _, _, count in panels(filters))
    with groups(cx, window):
        for first, wide, count in panels(filters):
            panel = Panel(window, source, weights, wide, first + wide * count)
            few, more = pixel_tiles.shapes(wide)
            with (body.shared_loop if by_panel else body.loop)("o", panel.end, first, wide):
                for rows in spans(window, 1):
                    loop = body.loop if by_panel else body.shared_loop
                    with loop("h", rows.end, rows.first):
                        for columns in spans(window, 2):
                            size = columns.end - columns.first
                            each = even_parts(size, few[0]), even_parts(size, more[0])
                            for when, parts in by_registers(body, *each):
                                vectors = (more if when == WIDE else few)[1]
                                for part in parts:
                                    _emit_part(cx, panel, rows, columns, part, vectors, when)


def _emit_part(
    cx: KernelContext,
    panel: Panel,
    rows: Span,
    columns: Span,
    part: Part,
    vectors: int,
    when: str,
) -> None:
    """Tiles of pixels of the output row ``h``."""
    window, source = panel.window, panel.source
    (_, down, step), (_, dh, dw) = window.strides, window.dilations
    kernel = window.kernel[2]
    first = columns.first + part.first
    row = f"(h * {down} + {rows.low * dh - window.begin[1]}) * {source.pitch}"
    column = f"q * {step} + {columns.low * dw - window.begin[2]}"
    tall = rows.high - rows.low if columns.high else 0
    start = f"image + ({row} + {column})" if tall else "image"
    given = [start, str((rows.low * kernel + columns.low) * panel.width), str(tall)]
    walk = _walk(window, panel.width, columns.high - columns.low)
    with cx.body.loop("q", first + part.length * part.count, first, part.length):
        channels, size = Channels("0", str(channels_of(cx)[0])), (part.length, vectors)
        pixel_tiles.emit_tile(cx, panel, channels, size, walk, given, "q", when)


def _walk(window: Window, width: int, seen: int) -> Walk:
    """Channels and ``tall`` rows of the kernel, of which ``seen`` columns are multiplied, weights
    from the ``first`` one on."""
    (_, kh, kw), step, stride = window.kernel, window.dilations[2], window.strides[2]
    return Walk(
        name=f"alike{kh}x{kw}_{seen}",
        parameters=f"{pixel_tiles.PARAMETERS}, ptrdiff_t first, ptrdiff_t tall",
        heads=(
            "for (ptrdiff_t i = 0; i < cn; ++i)",
            "for (ptrdiff_t k = 0; k < tall; ++k)",
        ),
        steps=tuple(
            (f"seen[@ * {stride} + {x * step}]", f"w + {x * width}") for x in range(max(1, seen))
        ),
        before="const float *seen = a + i * plane + k * pitch;\n    "
        f"    const float *w = b + first + (i * {kh} + k) * {kw * width};",
    )
