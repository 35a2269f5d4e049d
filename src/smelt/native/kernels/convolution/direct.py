"""Convolutions with constant weights: the micro-kernel's rows are pixels, its columns filters.

Weights are packed in panels of filters, each by channel and kernel position. Pixels are read in
place, or from a padded copy of a band of rows if the window reaches beyond the image. Strides and
dilations only change the offsets of pixels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution import equal_taps, pixel_tiles
from smelt.native.kernels.convolution.algorithm import Algorithm
from smelt.native.kernels.convolution.channel_blocks import block_of
from smelt.native.kernels.convolution.filter_panels import PANEL, Filters, Source, panels
from smelt.native.kernels.convolution.inside import declare_rows, may_skip_padding
from smelt.native.kernels.convolution.parts import (
    constant_bias,
    constant_weights,
    epilogue_by_pixel,
    groups,
    is_float,
    padded_rows,
)
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import SideOperand
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.register_blocks import even_blocks
from smelt.native.kernels.vector import MOST_LANES

FEWEST_FILTERS = 4
BAND_PIXELS, MANY = 96, 224
"""The approximate fewest output pixels of a band, for few and for many weights, which are read once
per band.
"""

HEAVY = 1 << 18
"""The fewest weights that do not stay in cache from band to band."""

NO_INLINE = 128
"""The fewest channels for which pixels of a strided pointwise convolution are packed. Channels a
power of two of cache lines apart evict each other from the first-level cache."""


IDLE = 1.15
"""The ratio of lanes to pixels (or to filters) above which many lanes of a vector are idle."""


def leaves_pixel_lanes_idle(instance: Instance, window: Window) -> bool:
    """True if this file's kernels fill vectors better, with filters, than vectors of pixels would.

    An example are 7 x 7 pixels.
    """
    vectors = -(-window.pixels // MOST_LANES)
    return supports(instance, window) and vectors * MOST_LANES > IDLE * window.pixels


def reads_well_in_place(instance: Instance, window: Window) -> bool:
    """True if this file's kernels are as fast, with pixels in place, as kernels that pack pixels.

    They are if the kernel reads each pixel several times and filters leave few lanes idle.
    """
    filters = channels_of(instance)[1]
    idle = -(-filters // MOST_LANES) * MOST_LANES / filters
    return supports(instance, window) and not window.pointwise and idle <= IDLE


def supports(instance: Instance, window: Window) -> bool:
    """True if this file's kernels support the instruction: one plane, constant weights, enough
    filters.
    """
    filters = channels_of(instance)[1]
    known = constant_weights(instance) is not None
    return window.flat and known and is_float(instance) and filters >= FEWEST_FILTERS


@dataclass(frozen=True, slots=True)
class Band:
    """A band of output ``rows``; it reads ``rows_read`` rows of ``pitch`` elements, with padding.

    With ``by``, only every by-th row and column of the image is copied.
    """

    rows: int
    rows_read: int
    pitch: int
    by: tuple[int, int] = (1, 1)

    @property
    def plane(self) -> int:
        """The elements of a channel in a band: the rows that the band reads, ``pitch`` apart."""
        return self.rows_read * self.pitch


def band_of(instance: Instance, window: Window) -> Band:
    """Return the bands: all read the same number of rows; the last one may compute fewer."""
    (_, out_height, out_width), (_, kernel_h, kernel_w) = window.output, window.kernel
    (_, stride_h, stride_w), (_, dilation_h, dilation_w) = window.strides, window.dilations
    channels = channels_of(instance)[0]
    count = max(1, out_height * out_width // band_pixels(instance, window))
    rows = -(-out_height // count)
    skips_pixels = kernel_h == kernel_w == 1 and max(stride_h, stride_w) > 1
    if skips_pixels and channels >= NO_INLINE:  # only the pixels that are read are copied
        return Band(rows, rows, out_width, (stride_h, stride_w))
    return Band(
        rows,
        (rows - 1) * stride_h + (kernel_h - 1) * dilation_h + 1,
        (out_width - 1) * stride_w + (kernel_w - 1) * dilation_w + 1,
    )


def band_pixels(instance: Instance, window: Window) -> int:
    """Return the approximate fewest output pixels of a band."""
    channels, filters = channels_of(instance)
    heavy = filters * channels * window.kernel[1] * window.kernel[2] >= HEAVY
    return MANY if heavy else BAND_PIXELS


def _is_copied(window: Window, band: Band) -> bool:
    """True if the band is copied, with padding or without skipped pixels."""
    return window.padded or band.by != (1, 1)


def _block(instance: Instance, window: Window, band: Band) -> int:
    """Return the channels of a block; 0 if all channels are computed at once."""
    size, pixels = channels_of(instance)[0] * band.plane, band.rows * window.output[2]
    return block_of(instance, window, PANEL, size, pixels)


def workspace(instance: Instance, window: Window) -> int:
    """Return the bytes of the band's copy, and of a panel's partial sums."""
    if equal_taps.supports(instance, window):
        return 0
    band = band_of(instance, window)
    partial_sums = band.rows * window.output[2] * PANEL if _block(instance, window, band) else 0
    return 4 * (_copied_elements(instance, window, band) + partial_sums)


def _copied_elements(instance: Instance, window: Window, band: Band) -> int:
    """Return the elements of a band's copy, rounded up to a cache line; 0 without a copy."""
    size = channels_of(instance)[0] * band.plane if _is_copied(window, band) else 0
    return -(-size // MOST_LANES) * MOST_LANES


def emit(cx: KernelContext, window: Window) -> None:
    """Write loops over bands of rows, panels of filters, and tiles of pixels."""
    weights = filters_of(cx, skipped=may_skip_padding(cx, window))
    if equal_taps.supports(cx, window):
        equal_taps.emit(cx, window, weights)
        return
    band = band_of(cx, window)
    height = window.output[1]
    bands = even_blocks(height, band.rows)
    # Shards divide the bands if there are enough of them or too few panels; else the panels.
    shards_bands = sum(part.count for part in bands) >= 2 * cx.body.parts
    shards_bands = shards_bands or channels_of(cx)[1] < PANEL * cx.body.parts
    loop = cx.body.shared_loop if shards_bands else cx.body.loop
    with groups(cx, window):
        for part in bands:
            with loop("h", part.end, part.first, part.length):
                source = _source(cx, window, band, part.length)
                if weights.skipped:
                    declare_rows(cx.body, window, part.length)
                by_panel = not shards_bands
                pixel_tiles.emit(cx, window, source, weights, part.length, by_panel=by_panel)


def filters_of(cx: KernelContext, *, skipped: bool = False) -> Filters:
    """Return the packed weights, the bias and the epilogue, which adds a bias that is not
    constant."""
    bias, epilogue = _bias(cx), epilogue_by_pixel(cx)
    computed_bias = cx.optional(2) if not bias else None
    if computed_bias is not None:
        pointer = f"{computed_bias.name} + g * {channels_of(cx)[1]}"
        epilogue = epilogue.after("{0} + {1}", SideOperand(pointer, 0, 1))
    return Filters(_pack(cx), bias, epilogue, skipped)


def _source(cx: KernelContext, window: Window, band: Band, rows: int) -> Source:
    """Return where pixels from output row ``h`` on are read, and write the copy of the band.

    Without a copy, pixels are read from the image itself.
    """
    (_, height, width), (_, row_step, step) = window.input, window.strides
    block, partial_sums = _block(cx, window, band), ""
    if block:
        partial_sums = f"{cx.scratch(cx.type(0))} + {_copied_elements(cx, window, band)}"
    if not _is_copied(window, band):
        pointer = f"image + h * {row_step * width}"
        return Source(pointer, height * width, width, row_step * width, step, block, partial_sums)
    scratch = cx.scratch(cx.type(0))
    copy = padded_rows(cx, window, band.pitch, stride=band.by)
    row_step, step = row_step // band.by[0], step // band.by[1]
    rows_read = band.rows_read - (band.rows - rows) * row_step
    plane, down = band.plane, row_step * band.pitch
    first = f"h * {window.strides[1]} - {window.begin[1]}"
    with cx.body.loop("i", channels_of(cx)[0]):
        cx.body.line(
            f"{copy}(image + i * {height * width}, {scratch} + i * {plane}, {first}, {rows_read});"
        )
    return Source(scratch, plane, band.pitch, down, step, block, partial_sums)


def _pack(cx: KernelContext) -> str:
    """Return the name of the weights packed by panel, ``[channel, kernel position][filter]``.

    The last panel is filled up with zeros. Two vectors of zeros follow, which kernels may read.
    """
    weights = constant_weights(cx)
    assert weights is not None
    group, filters, channels, positions = weights.shape
    packed = []
    for g in range(group):
        for first, width, count in panels(filters):
            for o in range(first, first + width * count, width):
                panel = np.zeros((channels, positions, width), np.float32)
                in_panel = weights[g, o : o + width]
                panel[:, :, : in_panel.shape[0]] = in_panel.transpose(1, 2, 0)
                packed.append(panel.reshape(-1))
    packed.append(np.zeros(2 * MOST_LANES, np.float32))
    return cx.constant(np.concatenate(packed), cx.type(1))


def _bias(cx: KernelContext) -> str:
    """Return the name of the bias, filled up with zeros as ``_pack`` fills the weights.

    Returns "" if there is no bias or it is not constant.
    """
    bias = constant_bias(cx)
    if bias is None:
        return ""
    filters = bias.shape[1]
    total = sum(width * count for _, width, count in panels(filters))
    padded = np.zeros(bias.shape[0] * total + 2 * MOST_LANES, np.float32)
    padded[: -2 * MOST_LANES].reshape(-1, total)[:, :filters] = bias
    return cx.constant(padded, cx.type(0))


ALGORITHM = Algorithm(emit, workspace, supports, epilogue=True)
