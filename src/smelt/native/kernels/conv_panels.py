"""Large convolutions: ``smelt.native::ConvByPanels`` is a Conv with many filters and terms.

All pixels that a panel of output pixels reads are packed as a matrix ``[channel, kernel
position][pixel]`` with contiguous rows. The micro-kernel's rows are filters, its columns pixels.
Packing handles padding, strides and dilations.
"""

from __future__ import annotations

import math

from smelt.native.kernels.convolution import rows as by_rows
from smelt.native.kernels.convolution.filters import Rows, packed, tiles
from smelt.native.kernels.convolution.panels import PANEL, gather_function
from smelt.native.kernels.convolution.parts import (
    epilogue_by_filter,
    groups,
    is_float,
    side_operand_strides,
)
from smelt.native.kernels.convolution.window import Window, channels_of, window_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.reduction_loop import STRIDED, packed_rows
from smelt.native.kernels.register_blocks import WIDE, emit_vectors
from smelt.native.kernels.vector_micro_kernel import MicroKernel
from smelt.program.storage import Needs

CONV = "smelt.native::ConvByPanels"
GATHERED = 1 << 17
"""The elements of packed panels that stay in cache while all filters use them."""


def product_sizes(instance: Instance) -> tuple[int, int, int]:
    """Return filters, pixels and terms of a group's product; zeros if it is not float."""
    if not is_float(instance):
        return 0, 0, 0
    channels, filters = channels_of(instance)
    window = window_of(instance)
    return filters, window.pixels, channels * math.prod(window.kernel)


def _pixels_packed(instance: Instance) -> int:
    """Return the number of pixels that are packed at once, a multiple of the panel width."""
    _, pixels, terms = product_sizes(instance)
    return PANEL * min(max(2, GATHERED // (PANEL * terms)), -(-pixels // PANEL))


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of the packed pixels."""
    window = window_of(instance)
    if by_rows.supports(instance, window):
        return Needs(workspace=by_rows.workspace(instance, window))
    return Needs(workspace=4 * product_sizes(instance)[2] * _pixels_packed(instance))


def _supports_side_operand(instance: Instance, shape: tuple[int, ...]) -> bool:
    """True if the strides of the side operand merge."""
    return side_operand_strides(instance, shape) is not None


@kernel(CONV, needs=_needs, supports_side_operand=_supports_side_operand, shared=True)
def conv_by_panels(cx: KernelContext) -> None:
    """Write the convolution: pack panels of pixels that fit the cache, then multiply them by all
    filters.
    """
    window, body = window_of(cx), cx.body
    if by_rows.supports(cx, window):
        by_rows.emit(cx, window)
        return
    _, pixels, terms = product_sizes(cx)
    scratch, packed_pixels, weights = cx.scratch(cx.type(0)), _pixels_packed(cx), packed(cx)
    gather = gather_function(cx, window, channels_of(cx)[0], packed_pixels)
    with groups(cx, window), body.shared_loop("p", pixels, step=packed_pixels):
        remaining = f"{pixels} - p"
        count = f"{remaining} < {packed_pixels} ? {remaining} : {packed_pixels}"
        body.line(f"const ptrdiff_t count = {count};")
        body.line(f"{gather}(image, {scratch}, p, count);")
        for rows in tiles(cx, terms, weights):
            fetched = _prefetched_elements(cx, rows)
            if fetched:
                body.line(f"const float *ahead = {rows.weights} + {rows.block * terms};")
            with body.loop("q", "count", step=PANEL):
                _emit_tiles(cx, rows, terms, window, fetched)


FAR = 1 << 16
"""The fewest weights for which the micro-kernel prefetches the next block of weights."""


def _prefetched_elements(instance: Instance, rows: Rows) -> int:
    """Return the number of elements of the next weight block that each term prefetches.

    All panels together prefetch the whole block. 0 if weights stay in cache, or if filters are not
    computed in whole blocks.
    """
    filters, _, terms = product_sizes(instance)
    if rows.count != rows.block or rows.when != WIDE or filters * terms < FAR:
        return 0
    return -(-rows.block // (_pixels_packed(instance) // PANEL))


def _emit_tiles(cx: KernelContext, rows: Rows, terms: int, window: Window, fetched: int) -> None:
    """Write the product of the filters from ``o`` on with the panel from pixel ``p + q`` on."""
    filters = channels_of(cx)[1]
    bias, body, pixels, when = cx.optional(2), cx.body, window.pixels, rows.when
    start = f"{bias.name} + g * {filters} + o" if bias else ""
    epilogue = epilogue_by_filter(cx).at("o", "p + q + l")
    reduction_loop = packed_rows(rows.block, fetched) if rows.block else STRIDED

    def tile(vectors: int, stored: str, when: str) -> None:
        """Write the call of a micro-kernel of ``vectors`` vectors of pixels at column ``l``.

        ``stored`` is the range of those pixels to store, as C; ``when`` is the preprocessor
        condition under which the micro-kernel exists, empty for always.
        """
        micro_kernel = MicroKernel(
            rows.count, vectors, reduction_loop, "row" if bias else "", epilogue, when=when
        )
        panel = f"{cx.scratch(cx.type(0))} + q * {terms} + l"
        strides = [] if rows.block else [str(terms), "1"]
        arguments = [str(terms), rows.weights, *strides, panel, str(PANEL)]
        arguments += ["ahead"] if fetched else []
        micro_kernel.call(cx, arguments, f"out + o * {pixels} + p + q + l", pixels, stored, start)

    body.line(f"const ptrdiff_t wide = count - q < {PANEL} ? count - q : {PANEL};")
    with body.block("for (ptrdiff_t l = 0; l < wide; l += 2 * LANES)"):
        emit_vectors(body, pixels, when, tile)
        if fetched:
            body.line(f"ahead += {fetched * terms};")
