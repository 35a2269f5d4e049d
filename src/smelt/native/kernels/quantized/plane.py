"""An image of bytes as convolutions of integers read it: less its zero point, channels in pairs.

A band of rows is copied with its padding, which becomes 0, and split by stride into phases, so
that neighbouring output pixels read neighbours. Two channels lie beside each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.lanes import MOST_SUMS

BAND_PIXELS = 128
"""Output pixels of a band, about: weights are read once a band."""


@dataclass(frozen=True)
class Band:
    """Output ``rows`` of ``wide`` pixels at a time, of ``height`` that there are.

    They see ``phases`` of ``seen`` rows of ``pitch`` pixels.
    """

    window: Window
    height: int
    wide: int
    rows: int
    seen: int
    pitch: int
    phases: tuple[tuple[int, int], ...]

    @property
    def plane(self) -> int:
        """Elements of two channels."""
        return 2 * len(self.phases) * self.seen * self.pitch

    def columns(self, phase: int) -> tuple[int, int, int]:
        """Where a row of a phase begins in the image, and which columns are of the image."""
        step, width = self.window.strides[2], self.window.input[2]
        first = phase - self.window.begin[2]
        low = min(max(0, -(first // step)), self.pitch)
        return first, low, max(low, min(self.pitch, (width - 1 - first) // step + 1))

    def elements(self, pairs: int) -> int:
        """Elements of so many pairs of channels, and what vectors read past them."""
        return pairs * self.plane + 4 * MOST_SUMS

    def places(self) -> list[int]:
        """Where each position of the kernel reads, in elements."""
        (_, kh, kw), (_, down, step) = self.window.kernel, self.window.strides
        _, dh, dw = self.window.dilations
        return [
            2
            * (
                (self.phases.index((y * dh % down, x * dw % step)) * self.seen + y * dh // down)
                * self.pitch
                + x * dw // step
            )
            for y in range(kh)
            for x in range(kw)
        ]


def band_of(window: Window, pixels: int = BAND_PIXELS) -> Band:
    """Bands of so many output ``pixels``; those of a pointwise one are cut wherever it is full."""
    if window.pointwise:
        window = _in_rows(window)
    (_, height, wide), (_, kh, kw) = window.output, window.kernel
    (_, down, step), (_, dh, dw) = window.strides, window.dilations
    phases = {(y * dh % down, x * dw % step) for y in range(kh) for x in range(kw)}
    rows = min(height, max(1, pixels // max(wide, 1)))
    seen = rows + (kh - 1) * dh // down
    pitch = wide + (kw - 1) * dw // step
    return Band(window, height, wide, rows, seen, pitch, tuple(sorted(phases)))


def _in_rows(window: Window) -> Window:
    """The same pixels in rows as long as a band, if they can be cut so evenly, or in one row."""
    pixels = window.pixels
    wide = next((w for w in range(BAND_PIXELS, 31, -8) if pixels % w == 0), window.output[2])
    wide = pixels if pixels <= 2 * BAND_PIXELS else wide
    size = (1, pixels // wide, wide)
    return replace(window, input=size, output=size)


COPY = """static inline void copy_pair_T(const T *image, ptrdiff_t next, ptrdiff_t at,
    int16_t *restrict to, ptrdiff_t low, ptrdiff_t high, ptrdiff_t pitch, ptrdiff_t step,
    int16_t zero)
{
    ptrdiff_t q;
    for (q = 0; q < 2 * low; ++q)
        to[q] = 0;
    if (step == 1)
        for (q = low; q < high; ++q) {
            to[2 * q] = (int16_t)(image[at + q] - zero);
            to[2 * q + 1] = (int16_t)(image[at + next + q] - zero);
        }
    else if (step == 2)
        for (q = low; q < high; ++q) {
            to[2 * q] = (int16_t)(image[at + q * 2] - zero);
            to[2 * q + 1] = (int16_t)(image[at + next + q * 2] - zero);
        }
    else
        for (q = low; q < high; ++q) {
            to[2 * q] = (int16_t)(image[at + q * step] - zero);
            to[2 * q + 1] = (int16_t)(image[at + next + q * step] - zero);
        }
    for (q = 2 * high; q < 2 * pitch; ++q)
        to[q] = 0;
}
"""


def copy_pair(cx: KernelContext) -> str:
    """A function ``(image, next, at, to, low, high, pitch, step, zero)``: a row of pixels beside
    those ``next`` after them, and 0 before ``low`` and from ``high`` on."""
    name = cx.type(0).name
    text = COPY.replace("_T(", f"_{name}(").replace("T *", f"{name} *")
    return cx.call(f"copy_pair_{name}", text)


def emit_copy(cx: KernelContext, band: Band, channels: int, to: str) -> None:
    """Copy the band that output row ``h`` begins, from ``image`` less ``zero``, into ``to``.

    The last of an odd number of channels stands beside itself; weights there are 0.
    """
    window, body, copy = band.window, cx.body, copy_pair(cx)
    (_, height, width), (_, down, step) = window.input, window.strides
    with body.loop("c", channels, step=2):
        body.line(f"int16_t *row = {to} + c / 2 * {band.plane};")
        size = height * width
        body.line(f"const ptrdiff_t next = c + 1 < {channels} ? {size} : 0;")
        for top, left in band.phases:
            first, low, high = band.columns(left)
            with body.loop("r", band.seen):
                body.line(f"const ptrdiff_t y = (h + r) * {down} + ({top - window.begin[1]});")
                body.line(f"const ptrdiff_t at = c * {size} + y * {width} + ({first});")
                sizes = f"{low}, {high}, {band.pitch}, {step}"
                body.line(f"if (y < 0 || y >= {height})")
                body.line(f"    memset(row, 0, {4 * band.pitch});")
                body.line("else")
                body.line(f"    {copy}(image, next, at, row, {sizes}, zero);")
                body.line(f"row += {2 * band.pitch};")
