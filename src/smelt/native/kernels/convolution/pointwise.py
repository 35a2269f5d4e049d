"""1x1 convolutions as products of matrices: micro-kernel rows are filters, columns are pixels."""

from __future__ import annotations

from smelt.native.kernels.convolution import direct
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.filters import Rows, packed, tiles
from smelt.native.kernels.convolution.parts import epilogue_by_filter, groups, is_float
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import STRIDED, packed_rows
from smelt.native.kernels.register_blocks import WIDE
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_micro_kernel import MicroKernel
from smelt.program.run_sizes import Size, highest

ROWS, VECTORS = 6, 2
PANEL = VECTORS * MOST_LANES


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support the instruction: enough pixels to fill
    the widest tile."""
    enough = window.pixels >= PANEL and not direct.leaves_pixel_lanes_idle(instance, window)
    return window.pointwise and is_float(instance) and enough


def workspace(instance: Instance, window: Window) -> int:
    """Return 0: a kernel of one position reads the image in place."""
    return 0


def emit(cx: KernelContext, window: Window) -> None:
    """Write panels of pixels, and for each all filters.

    The last panel overlaps the one before. If one vector holds its pixels, it has a form for that.
    Shards divide the pixels, or the filters if there are few pixels.
    """
    channels, filters = channels_of(cx)
    pixels, body = window.pixels, cx.body
    tile_width = f"{VECTORS} * LANES"
    by_filter = highest(pixels) < 4 * body.parts * PANEL and filters >= 4 * ROWS * body.parts
    loop = body.loop if by_filter else body.shared_loop
    weights = packed(cx)
    with groups(cx, window), loop("j", pixels, step=tile_width):
        if isinstance(pixels, Size) or 0 < pixels % PANEL <= MOST_LANES:
            body.line(f"#if {WIDE}")
            with body.block(f"if ({pixels} - j <= LANES)"):
                body.line(f"const ptrdiff_t at = {pixels} - LANES;")
                for rows in tiles(cx, channels, weights, shared=by_filter):
                    if rows.when != f"!({WIDE})":
                        _emit_tile(cx, rows, pixels, vectors=1, when=WIDE)
                body.line("continue;")
            body.line("#endif")
        body.line(
            f"const ptrdiff_t at = j + {tile_width} <= {pixels} ? j : {pixels} - {tile_width};"
        )
        for rows in tiles(cx, channels, weights, shared=by_filter):
            _emit_tile(cx, rows, pixels, VECTORS, rows.when)


def _emit_tile(cx: KernelContext, rows: Rows, pixels: int, vectors: int, when: str) -> None:
    """Write the product of the filters from ``o`` on with vectors of pixels from ``at`` on."""
    (channels, filters), bias = channels_of(cx), cx.optional(2)
    reduction_loop = packed_rows(rows.block) if rows.block else STRIDED
    epilogue = epilogue_by_filter(cx).at("o", "at")
    tile = MicroKernel(
        rows.count, vectors, reduction_loop, "row" if bias else "", epilogue, when=when
    )
    strides = [] if rows.block else [str(channels), "1"]
    arguments = [str(channels), rows.weights, *strides, "image + at", str(pixels)]
    start = f"{bias.name} + g * {filters} + o" if bias else ""
    target = f"out + o * {pixels} + at"
    tile.call(cx, arguments, target, pixels, f"j - at, {vectors} * LANES", start)


ALGORITHM = Algorithm(emit, workspace, supports, epilogue=True)
