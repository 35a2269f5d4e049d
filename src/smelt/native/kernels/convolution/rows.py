"""Convolutions of wide images: micro-kernel rows are filters, columns are neighboring pixels.

The input rows of a block of output pixels are copied with their padding, channel after channel.
Each kernel position reads the same copy at another offset, so pixels are not gathered per position,
and whole vectors are stored in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.convolution.filters import Rows, packed, tiles
from smelt.native.kernels.convolution.parts import epilogue_by_filter, groups, is_float
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import ReductionLoop
from smelt.native.kernels.register_blocks import emit_vectors
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_micro_kernel import MicroKernel

PANEL = 2 * MOST_LANES
"""The pixels of a panel, two of the widest vectors."""

IDLE = 1.07
"""The largest ratio of lanes to pixels of a row for which rows fill vectors."""

UNROLLED = 8
"""The most kernel columns that are unrolled; more are a loop."""

COPIED = 1 << 16
"""The largest copy, in elements, so that it stays in cache; a copy for one panel may be larger."""

FAR = 4 * PANEL
"""The largest distance, in elements, of the first and last kernel column that share a copy."""

BLOCK = 1024
"""The approximate output pixels of a block; weights are read once per block."""


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support the instruction: one plane, column stride 1, rows that
    fill vectors.
    """
    width = window.output[2]
    vectors = -(-width // MOST_LANES)
    return (
        is_float(instance)
        and window.flat
        and not window.pointwise
        and window.strides[2] == 1
        and width >= PANEL
        and vectors * MOST_LANES <= IDLE * width
    )


@dataclass(frozen=True, slots=True)
class Block:
    """A block of output pixels that one copy serves: ``rows`` of ``width``.

    For each channel, the copy has ``parts`` copies of ``rows_read`` input rows, ``pitch`` elements
    each: one, or one for each kernel column if these are far apart. ``down`` are the rows of the
    copy between the inputs of two output rows, ``apart`` the rows between two kernel rows,
    ``across`` the elements between two kernel columns.
    """

    rows: int
    width: int
    rows_read: int
    pitch: int
    down: int
    apart: int
    across: int
    parts: int = 1

    @property
    def plane(self) -> int:
        """The elements of a channel: its rows, ``pitch`` apart, once for each of ``parts``."""
        return self.parts * self.rows_read * self.pitch


def _far_block(window: Window, terms: int) -> Block:
    """Return the block for kernel columns that are far apart: each column has its own copy."""
    _, kernel_h, kernel_w = window.kernel
    columns = min(window.output[2], max(PANEL, min(COPIED // terms, BLOCK) // PANEL * PANEL))
    return Block(
        rows=1,
        width=columns,
        rows_read=kernel_h,
        pitch=columns,
        down=window.strides[1],
        apart=1,
        across=kernel_h * columns,
        parts=kernel_w,
    )


def block_of(instance: Instance, window: Window) -> Block:
    """Return the size of the blocks, whose copy has at most ``COPIED`` elements if possible.

    A block is several whole rows, or a part of one row that is a multiple of ``PANEL`` wide.
    """
    channels = channels_of(instance)[0]
    (_, out_height, out_width), (_, kernel_h, kernel_w) = window.output, window.kernel
    (_, stride_h, _), (_, dilation_h, dilation_w) = window.strides, window.dilations
    reach = (kernel_w - 1) * dilation_w

    def rows_read(rows: int) -> int:
        """Return the input rows that ``rows`` output rows read."""
        return kernel_h if rows == 1 else (rows - 1) * stride_h + (kernel_h - 1) * dilation_h + 1

    most_columns = COPIED // (channels * kernel_h) - reach
    columns = min(out_width, max(PANEL, min(most_columns, BLOCK) // PANEL * PANEL))
    if reach > max(columns, FAR):
        return _far_block(window, channels * kernel_h * kernel_w)
    rows = 1
    while columns == out_width and rows < out_height and rows * out_width < BLOCK:
        if channels * rows_read(rows + 1) * (out_width + reach) > COPIED:
            break
        rows += 1
    single = rows == 1
    return Block(
        rows,
        columns,
        rows_read(rows),
        columns + reach,
        stride_h,
        1 if single else dilation_h,
        dilation_w,
    )


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of the copy, and of the elements that a last vector reads beyond it."""
    block = block_of(instance, window)
    return 4 * (channels_of(instance)[0] * block.plane + PANEL)


def emit(cx: KernelContext, window: Window) -> None:
    """Write loops over blocks of pixels, tiles of filters, and panels of pixels."""
    body, (_, out_height, out_width) = cx.body, window.output
    block = block_of(cx, window)
    by_row = -(-out_height // block.rows) >= -(-out_width // block.width)
    weights = packed(cx)
    loops = (body.shared_loop, body.loop) if by_row else (body.loop, body.shared_loop)
    with groups(cx, window), loops[0]("h", out_height, step=block.rows):
        remaining = f"{out_height} - h < {block.rows} ? {out_height} - h : {block.rows}"
        body.line(f"const ptrdiff_t rows = {remaining if out_height % block.rows else block.rows};")
        with loops[1]("w", out_width, step=block.width):
            remaining = f"{out_width} - w < {block.width} ? {out_width} - w : {block.width}"
            body.line(
                f"const ptrdiff_t wide = {remaining if out_width % block.width else block.width};"
            )
            _emit_copy(cx, window, block)
            for rows in tiles(cx, cx.input(1).size // cx.shape(1)[0], weights):
                with (
                    body.loop("r", "rows"),
                    body.block("for (ptrdiff_t l = 0; l < wide; l += 2 * LANES)"),
                ):
                    _emit_tiles(cx, rows, window, block)


COPY = """static void padded_part(const float *restrict image, float *restrict to, ptrdiff_t height,
    ptrdiff_t width, ptrdiff_t y, ptrdiff_t x, ptrdiff_t rows, ptrdiff_t step, ptrdiff_t pitch)
{
    ptrdiff_t low = x < 0 ? -x : 0, high = width - x < pitch ? width - x : pitch;
    low = low < pitch ? low : pitch;
    high = high < low ? low : high;
    for (; rows > 0; --rows, y += step, to += pitch) {
        const int inside = y >= 0 && y < height;
        const ptrdiff_t first = inside ? low : pitch;
        for (ptrdiff_t q = 0; q < first; ++q)
            to[q] = 0;
        if (!inside)
            continue;
        if (high > low)
            memcpy(to + low, image + (y * width + x + low), 4 * (size_t)(high - low));
        for (ptrdiff_t q = high; q < pitch; ++q)
            to[q] = 0;
    }
}
"""
"""Copies ``rows`` rows of ``pitch``, ``step`` apart, from ``(y, x)`` on, with 0 outside."""


def _emit_copy(cx: KernelContext, window: Window, block: Block) -> None:
    """Write the copy of all channels for the block from output row ``h`` and column ``w`` on."""
    cx.call("padded_part", COPY)
    _, height, width = window.input
    step = window.dilations[1] if block.rows == 1 else 1
    rows_read = str(block.rows_read)
    if block.rows > 1:
        rows_read = f"(rows - 1) * {block.down} + {block.rows_read - (block.rows - 1) * block.down}"
    with cx.body.loop("i", channels_of(cx)[0]):
        for part in range(block.parts):
            first = part * window.dilations[2] - window.begin[2]
            arguments = [
                f"image + i * {height * width}",
                f"{cx.scratch(cx.type(0))} + i * {block.plane} + {part * block.across}",
                *(str(height), str(width)),
                f"h * {block.down} - {window.begin[1]}",
                f"w + ({first})",
                *(rows_read, str(step), str(block.pitch)),
            ]
            cx.body.line(f"padded_part({', '.join(arguments)});")


def _emit_tiles(cx: KernelContext, rows: Rows, window: Window, block: Block) -> None:
    """Write the product of the filters ``rows`` with the pixels from ``l`` on of row ``r``."""
    channels, filters = channels_of(cx)
    bias, pixels, when = cx.optional(2), window.pixels, rows.when
    pixel = f"(h + r) * {window.output[2]} + w + l"
    start = f"{bias.name} + g * {filters} + o" if bias else ""
    epilogue = epilogue_by_filter(cx).at("o", pixel)
    reduction_loop = _reduction_loop(window, block.across, rows.block)
    source = f"{cx.scratch(cx.type(0))} + r * {block.down * block.pitch} + l"
    row_step = block.apart * block.pitch
    arguments = [str(channels), str(block.plane), str(row_step), rows.weights, source]
    if not rows.block:
        arguments.append(str(channels * window.kernel[1] * window.kernel[2]))

    def tile(vectors: int, stored: str, when: str) -> None:
        """Write the call of a micro-kernel of ``vectors`` vectors of pixels.

        ``stored`` is the C range of its pixels to store, such as ``0, left``; ``when`` is the
        preprocessor condition on registers under which the micro-kernel exists.
        """
        micro_kernel = MicroKernel(
            rows.count, vectors, reduction_loop, "row" if bias else "", epilogue, when=when
        )
        micro_kernel.call(cx, arguments, f"out + o * {pixels} + {pixel}", pixels, stored, start)

    emit_vectors(cx.body, window.output[2], when, tile)


def _reduction_loop(window: Window, across: int, block: int) -> ReductionLoop:
    """Return the reduction loop over channels, kernel rows and unrolled kernel columns.

    Kernel columns are ``across`` elements apart in the copied image.
    """
    _, kernel_h, kernel_w = window.kernel
    heads: tuple[str, ...] = (
        "for (ptrdiff_t i = 0; i < cn; ++i)",
        f"for (ptrdiff_t k = 0; k < {kernel_h}; ++k)",
    )
    row, term = ("@", block) if block else ("@ * am", 1)
    from_ = "const float *from = b + i * plane + k * pitch"
    steps = tuple((f"a[{row} + {x * term}]", f"from + {x * across}") for x in range(kernel_w))
    before, after = f"{from_};", f"a += {kernel_w * term};"
    if kernel_w > UNROLLED:
        heads += (f"for (ptrdiff_t x = 0; x < {kernel_w}; ++x)",)
        before, after = f"{from_} + x * {across};", f"a += {term};"
        steps = ((f"a[{row}]", "from"),)
    parameters = "ptrdiff_t cn, ptrdiff_t plane, ptrdiff_t pitch, const float *restrict a, "
    parameters += "const float *restrict b" + ("" if block else ", ptrdiff_t am")
    return ReductionLoop(f"rows{kernel_h}x{kernel_w}", parameters, heads, steps, before, after)
