"""ConvTranspose of floats as a matrix product whose rows are then added into the result.

The product's rows are pairs of filter and kernel position, its columns image pixels. Filters are
computed in blocks whose products stay in cache. A kernel column adds to every stride-th element of
a result row. Each of these phases is summed in a row of its own, and the rows are then interleaved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.parts import epilogue_by_filter
from smelt.native.kernels.convolution.window import Window, window_of
from smelt.native.kernels.epilogue import Epilogue, emit_stores
from smelt.native.kernels.float_panels import pack
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduction_loop import STRIDED, packed_rows
from smelt.native.kernels.register_blocks import EqualBlocks, even_blocks
from smelt.native.kernels.vector import MOST_LANES
from smelt.native.kernels.vector_dot import Matrices, emit_packed
from smelt.native.kernels.vector_micro_kernel import MicroKernel

ROWS, VECTORS, FEWEST_TERMS = 6, 2, 4
"""FEWEST_TERMS: the fewest channels for which the product pays despite its memory traffic."""

MOST_COLUMNS = 64
"""The most kernel columns; each is a loop in the code."""

MOST_SUMS = 1 << 16
"""The largest block of products, in elements, unless a single filter needs more."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a group: channels, filters, kernel positions, and image pixels."""

    channels: int
    filters: int
    positions: int
    pixels: int


def sizes_of(instance: Instance, window: Window) -> Sizes:
    """Return the sizes of a ConvTranspose's group."""
    channels, filters = instance.shape(1)[0] // instance.int("group"), instance.shape(1)[1]
    return Sizes(channels, filters, math.prod(window.kernel), window.plane)


def supports(instance: Instance) -> bool:
    """True if this file's kernels support the instruction: static sizes and enough channels.

    Weights must be constant unless pixels fill a micro-kernel. The products of one filter must not
    exceed the image and the result in size.
    """
    numbers = (*instance.shape(0)[1:], *instance.shape(1), *instance.output_shape()[1:])
    if not all(type(number) is int and number > 0 for number in numbers):
        return False
    window = window_of(instance)
    sizes = sizes_of(instance, window)
    image_and_result = math.prod(instance.shape(0)[1:]) + math.prod(instance.output_shape()[1:])
    return (
        instance.type(0).name == instance.type(1).name == "float"
        and sizes.channels >= FEWEST_TERMS
        and window.kernel[2] <= MOST_COLUMNS
        and sizes.positions * sizes.pixels <= image_and_result
        and (_is_wide(sizes) or _weights(instance) is not None)
    )


def workspace(instance: Instance) -> int:
    """Return the bytes of a block of products and of rows of the result."""
    window = window_of(instance)
    sizes = sizes_of(instance, window)
    step = window.strides[2]
    rows = step * -(-window.output[2] // step) + window.output[2]
    return 4 * (_block(sizes, window) * sizes.positions * sizes.pixels + rows)


def emit(cx: KernelContext) -> None:
    """Write, for each sample and group, blocks of filters: their products, then the sums.

    Packed weights are one array: groups in order, in each the blocks in order. ``offset`` is where
    the blocks of one length begin within a group, as C.

    ```
    for (int64_t f = 0; f < 64; f += 16) {
        ... the products of 16 filters, with weights at g * 8192 + 0 + (f - 0) / 16 * 2048
        for (int64_t m = f; m < f + 16; ++m) ... the sums of filter m
    ```
    """
    window, body, group = window_of(cx), cx.body, cx.int("group")
    sizes, source, output = sizes_of(cx, window), cx.input(0), cx.output()
    blocks = even_blocks(sizes.filters, _block(sizes, window))
    weights, packed = _weights(cx), ""
    if weights is not None:
        packed = cx.constant(_pack(weights, sizes, blocks), cx.type(1))
    sums = cx.scratch(cx.type(0))
    with body.loops(("n", "g"), (source.shape[0], group)):
        n_g = f"(n * {group} + g)"
        body.line(f"const float *image = {source.name} + {n_g} * {sizes.channels * sizes.pixels};")
        body.line(f"float *out = {output.name} + {n_g} * {sizes.filters * window.pixels};")
        offset = "0"
        for block in blocks:
            filters = block.length
            packed_size = sum(part.size for part in _packed_parts(weights, sizes, block))
            with body.shared_loop("f", block.end, block.first, filters):
                group_start = f"g * {_packed_count(weights, sizes, blocks)} + {offset}"
                block_number = f"(f - {block.first}) / {filters}"
                block_weights = f"{packed} + {group_start} + {block_number} * {packed_size}"
                _emit_product(cx, sizes, filters, block_weights if packed else "", sums)
                with body.loop("m", f"f + {filters}", "f"):
                    _emit_rows(cx, window, sizes, filters, sums)
            offset = f"{offset} + {packed_size * block.count}"


def _is_wide(sizes: Sizes) -> bool:
    """True if pixels fill the columns of a micro-kernel; otherwise they are its rows."""
    return sizes.pixels >= VECTORS * MOST_LANES


def _block(sizes: Sizes, window: Window) -> int:
    """Return the filters per block: their products are at most an eighth of the result, if
    possible.
    """
    budget = min(MOST_SUMS, sizes.filters * window.pixels // 8)
    return max(1, min(sizes.filters, budget // (sizes.positions * sizes.pixels)))


def _weights(instance: Instance) -> np.ndarray | None:
    """Return the weights as ``[channel, filter, kernel position]``; None if not constant."""
    array = instance.program.constants.get(instance.instruction.inputs[1])
    shape = instance.shape(1)
    return None if array is None else np.ascontiguousarray(array).reshape(*shape[:2], -1)


def _packed_parts(weights: np.ndarray | None, sizes: Sizes, block: EqualBlocks) -> list[np.ndarray]:
    """Return the packed filters of the first block of the first group, [] if not constant.

    All blocks of ``block`` and all groups have as many elements.
    """
    if weights is None:
        return []
    part = weights[: sizes.channels, block.first : block.first + block.length]
    return _packed_matrix(part.reshape(sizes.channels, -1), sizes)


def _packed_matrix(matrix: np.ndarray, sizes: Sizes) -> list[np.ndarray]:
    """Return the matrix ``[channel, row]`` packed for the micro-kernel."""
    if not _is_wide(sizes):
        return [pack(matrix, sizes.pixels)]
    return [
        matrix[:, at : at + part.length].reshape(-1)
        for part in even_blocks(matrix.shape[1], ROWS)
        for at in part.starts()
    ]


def _packed_count(weights: np.ndarray | None, sizes: Sizes, blocks: list[EqualBlocks]) -> int:
    """Return the number of elements of the packed weights of a group."""
    return sum(
        part.size * block.count for block in blocks for part in _packed_parts(weights, sizes, block)
    )


def _pack(weights: np.ndarray, sizes: Sizes, blocks: list[EqualBlocks]) -> np.ndarray:
    """Return all groups packed, block by block."""
    packed = []
    for first in range(0, weights.shape[0], sizes.channels):
        group = weights[first : first + sizes.channels]
        for block in blocks:
            for f in block.starts():
                part = group[:, f : f + block.length].reshape(sizes.channels, -1)
                packed += _packed_matrix(part, sizes)
    return np.concatenate(packed)


def _emit_product(cx: KernelContext, sizes: Sizes, filters: int, packed: str, sums: str) -> None:
    """Write the product ``sums[row][pixel]``, or ``sums[pixel][row]`` if there are few pixels."""
    rows, body = filters * sizes.positions, cx.body
    channels, pixels = sizes.channels, sizes.pixels
    if not _is_wide(sizes):
        emit_packed(
            cx,
            Matrices(
                *(pixels, rows, channels),
                *("image", 1, pixels),
                *(f"({packed})", rows, 1),
                sums,
                Epilogue(),
            ),
        )
        return
    tile_width, all_rows = f"{VECTORS} * LANES", sizes.filters * sizes.positions
    with body.loop("j", pixels, step=tile_width):
        body.line(
            f"const ptrdiff_t at = j + {tile_width} <= {pixels} ? j : {pixels} - {tile_width};"
        )
        for part in even_blocks(rows, ROWS):
            with body.loop("r", part.end, part.first, part.length):
                if packed:
                    arguments = [str(channels), f"{packed} + r * {channels}"]
                    reduction_loop = packed_rows(part.length)
                else:
                    first = f"g * {channels * all_rows} + f * {sizes.positions} + r"
                    reduction_loop = STRIDED
                    arguments = [str(channels), f"{cx.input(1).name} + {first}", "1", str(all_rows)]
                tile = MicroKernel(part.length, VECTORS, reduction_loop)
                arguments += ["image + at", str(pixels)]
                tile.call(
                    cx, arguments, f"{sums} + r * {pixels} + at", pixels, f"j - at, {tile_width}"
                )


def _emit_rows(cx: KernelContext, window: Window, sizes: Sizes, filters: int, sums: str) -> None:
    """Write all result rows of filter ``m``.

    1. ``sum`` starts as the bias: one row for each phase, the result columns modulo the stride.
    2. Each kernel row ``kh`` with ``sh = h + begin - kh * dilation`` a multiple of the stride adds
       to the phases.
    3. The phases are interleaved to a row of the result, to which the epilogue is applied.
    """
    body, (out_depth, out_height, out_width) = cx.body, window.output
    step, bias = window.strides[2], cx.optional(2)
    epilogue = epilogue_by_filter(cx).at("m", f"(z * {out_height} + h) * {out_width}")
    pitch = -(-out_width // step)
    rows = f"{sums} + {_block(sizes, window) * sizes.positions * sizes.pixels}"
    with body.loops(("z", "h"), (out_depth, out_height)):
        body.line(f"float *row = out + m * {window.pixels} + (z * {out_height} + h) * {out_width};")
        body.line(f"float *sum = {rows if epilogue != Epilogue() or step > 1 else 'row'};")
        start = f"{bias.name}[g * {sizes.filters} + m]" if bias else "0"
        with body.loop("l", step * pitch):
            body.line(f"sum[l] = {start};")
        with body.loops(("kz", "kh"), window.kernel[:2]):
            for name, at, dim in (("z", "kz", 0), ("h", "kh", 1)):
                source_row = f"{name} + {window.begin[dim]} - {at} * {window.dilations[dim]}"
                stride, size = window.strides[dim], window.input[dim]
                body.line(f"const ptrdiff_t s{name} = {source_row};")
                body.line(
                    f"if (s{name} < 0 || s{name} % {stride} != 0 || s{name} / {stride} >= {size})"
                )
                body.line("    continue;")
            _emit_columns(cx, window, sizes, filters, sums)
        _interleave(
            cx, out_width, step, f"sum + {step * pitch}" if epilogue != Epilogue() else "row"
        )
        if epilogue != Epilogue():
            interleaved = f"sum + {step * pitch if step > 1 else 0}"
            stores = (interleaved, out_width), ("row", out_width)
            emit_stores(body, epilogue, (1, out_width), *stores)


def _emit_columns(cx: KernelContext, window: Window, sizes: Sizes, filters: int, sums: str) -> None:
    """Write the addition of all kernel columns, for one kernel row and one image row.

    Kernel column ``x`` adds the products of image column ``c`` to result column
    ``c * stride - begin + x * dilation``. That is element ``c + shift`` of the row of one phase.
    """
    body, rows = cx.body, filters * sizes.positions
    (_, stride_h, stride_w), (_, height, in_width) = window.strides, window.input
    _, kernel_h, kernel_w = window.kernel
    width, pitch = window.output[2], -(-window.output[2] // stride_w)
    is_wide = _is_wide(sizes)
    source_index = f"(sz / {window.strides[0]} * {height} + sh / {stride_h}) * {in_width}"
    position = f"((m - f) * {sizes.positions} + (kz * {kernel_h} + kh) * {kernel_w})"
    row, pitch_of = (position, sizes.pixels) if is_wide else (source_index, rows)
    first_column = source_index if is_wide else position
    body.line(f"const float *from = {sums} + {row} * {pitch_of} + {first_column};")
    by_pixel, by_column = (1, sizes.pixels) if is_wide else (rows, 1)
    for column in range(kernel_w):
        shift, phase = divmod(column * window.dilations[2] - window.begin[2], stride_w)
        low, high = max(0, shift), min(shift + in_width, -(-(width - phase) // stride_w))
        if low >= high:
            continue
        with body.loop("l", high, low):
            at = f"(l - {shift}) * {by_pixel}" if shift >= 0 else f"(l + {-shift}) * {by_pixel}"
            body.line(f"sum[l + {phase * pitch}] += from[{at} + {column * by_column}];")


def _interleave(cx: KernelContext, width: int, step: int, to: str) -> None:
    """Write the rows of ``step`` phases in ``sum``, interleaved, to ``to``.

    Element ``i`` of all phases becomes ``step`` adjacent elements.
    """
    if step == 1:
        return
    pitch, whole_steps = -(-width // step), width // step
    cx.body.line(f"float *all = {to};")
    with cx.body.loop("l", whole_steps):
        if step <= MOST_LANES:
            for phase in range(step):
                cx.body.line(f"all[l * {step} + {phase}] = sum[l + {phase * pitch}];")
        else:
            with cx.body.loop("s", step):
                cx.body.line(f"all[l * {step} + s] = sum[l + s * {pitch}];")
    for phase in range(width % step):
        cx.body.line(f"all[{whole_steps * step + phase}] = sum[{whole_steps + phase * pitch}];")
