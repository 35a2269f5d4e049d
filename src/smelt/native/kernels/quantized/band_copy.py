"""Copies of byte images for integer convolutions: unsigned, four channels of a pixel contiguous.

A band of rows is copied with its padding, which is the zero point. It is split by stride into
phases, so neighboring output pixels read contiguous pixels. Signed bytes, and their zero point,
become unsigned by adding 128.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS

BAND_PIXELS = 128
"""The approximate number of output pixels of a band; weights are read once per band."""


@dataclass(frozen=True)
class Band:
    """A band of output ``rows`` of ``wide`` pixels, which are computed at a time.

    It reads ``phases``, each with ``rows_read`` rows of ``pitch`` pixels.
    """

    window: Window
    height: int
    wide: int
    rows: int
    rows_read: int
    pitch: int
    phases: tuple[tuple[int, int], ...]

    @property
    def plane(self) -> int:
        """The number of pixels that the band reads, in all phases."""
        return len(self.phases) * self.rows_read * self.pitch

    def columns(self, left: int) -> tuple[int, int, int]:
        """Return ``(first, low, high)`` for a phase whose left offset is ``left``.

        Pixel ``i`` of its row is image column ``first + i * step``; pixels from ``low`` up to
        ``high`` are inside the image, the others are padding.
        """
        step, width = self.window.strides[2], self.window.input[2]
        first = left - self.window.begin[2]
        low = min(max(0, -(first // step)), self.pitch)
        return first, low, max(low, min(self.pitch, (width - 1 - first) // step + 1))

    def quad_bytes(self, quads: int) -> int:
        """Return the bytes of ``quads`` groups of four channels, and of what vectors read past
        them.
        """
        return 4 * quads * self.plane + 8 * MOST_SUMS

    def pixel_offsets(self) -> list[int]:
        """Return the index of the pixel that each kernel position reads for the
        first output pixel."""
        (_, kernel_h, kernel_w), (_, stride_h, stride_w) = self.window.kernel, self.window.strides
        _, dilation_h, dilation_w = self.window.dilations
        return [
            (
                self.phases.index((row * dilation_h % stride_h, column * dilation_w % stride_w))
                * self.rows_read
                + row * dilation_h // stride_h
            )
            * self.pitch
            + column * dilation_w // stride_w
            for row in range(kernel_h)
            for column in range(kernel_w)
        ]


def band_of(window: Window, pixels: int = BAND_PIXELS) -> Band:
    """Return bands of about ``pixels`` output pixels; bands of a pointwise convolution may cut
    rows.
    """
    if window.pointwise:
        window = _in_rows(window)
    (_, out_height, out_width), (_, kernel_h, kernel_w) = window.output, window.kernel
    (_, stride_h, stride_w), (_, dilation_h, dilation_w) = window.strides, window.dilations
    phases = {
        (row * dilation_h % stride_h, column * dilation_w % stride_w)
        for row in range(kernel_h)
        for column in range(kernel_w)
    }
    rows = min(out_height, max(1, pixels // max(out_width, 1)))
    rows_read = rows + (kernel_h - 1) * dilation_h // stride_h
    pitch = out_width + (kernel_w - 1) * dilation_w // stride_w
    return Band(window, out_height, out_width, rows, rows_read, pitch, tuple(sorted(phases)))


def _in_rows(window: Window) -> Window:
    """Return the window with its pixels in rows of about a band's length, or in one row.

    A row has a length that divides the number of pixels, so no row is shorter than the others.
    """
    pixels = window.pixels
    row_length = next(
        (length for length in range(BAND_PIXELS, 31, -8) if pixels % length == 0), window.output[2]
    )
    row_length = pixels if pixels <= 2 * BAND_PIXELS else row_length
    size = (1, pixels // row_length, row_length)
    return replace(window, input=size, output=size)


COPY = """#if SUMS > 1
typedef unsigned char bytes16 __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint16_t shorts8 __attribute__((vector_size(16), may_alias));
typedef int64_t two_longs __attribute__((vector_size(16), may_alias));
#if defined(__clang__)
#define MIXED_BYTES(v, w, ...) ((bytes16)__builtin_shufflevector(v, w, __VA_ARGS__))
#else
#define MIXED_BYTES(v, w, ...) \\
    ((bytes16)__builtin_shuffle(v, w, __extension__(bytes16){ __VA_ARGS__ }))
#endif
#define LOW_BYTES(v, w) \\
    MIXED_BYTES(v, w, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_BYTES(v, w) \\
    MIXED_BYTES(v, w, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_TWOS(v, w) \\
    MIXED_BYTES(v, w, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23)
#define HIGH_TWOS(v, w) \\
    MIXED_BYTES(v, w, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31)
static IF_CALLED inline bytes16 some_bytes(const unsigned char *p, ptrdiff_t step, ptrdiff_t n)
{
    if (n == 16 && step == 1)
        return *(const bytes16 *)p;
    if (n == 16) {
        const bytes16 v = *(const bytes16 *)p, w = *(const bytes16 *)(p + 15);
        return MIXED_BYTES(v, w, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    }
    const two_longs v = { *(const two_words *)p, step == 1 ? 0 : *(const two_words *)(p + 7) };
    const bytes16 b = (bytes16)v;
    return step == 1 ? b : MIXED_BYTES(b, b, 0, 2, 4, 6, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
}
static IF_CALLED inline void mix_quads(const unsigned char *const *rows, ptrdiff_t q,
    ptrdiff_t step, ptrdiff_t n, unsigned char flip, unsigned char *to)
{
    const bytes16 a = some_bytes(rows[0] + q * step, step, n);
    const bytes16 b = some_bytes(rows[1] + q * step, step, n);
    const bytes16 c = some_bytes(rows[2] + q * step, step, n);
    const bytes16 d = some_bytes(rows[3] + q * step, step, n);
    const bytes16 ab = LOW_BYTES(a, b) ^ flip, cd = LOW_BYTES(c, d) ^ flip;
    *(bytes16 *)(to + 4 * q) = LOW_TWOS(ab, cd);
    *(bytes16 *)(to + 4 * q + 16) = HIGH_TWOS(ab, cd);
    if (n == 16) {
        const bytes16 more = HIGH_BYTES(a, b) ^ flip, last = HIGH_BYTES(c, d) ^ flip;
        *(bytes16 *)(to + 4 * q + 32) = LOW_TWOS(more, last);
        *(bytes16 *)(to + 4 * q + 48) = HIGH_TWOS(more, last);
    }
}
#endif
static IF_CALLED void copy_quads(const unsigned char *const *rows, ptrdiff_t n, ptrdiff_t step,
    unsigned char flip, unsigned char *restrict to)
{
    ptrdiff_t q = 0;
#if SUMS > 1
    if (step == 1) {
        for (; q + 16 <= n; q += 16)
            mix_quads(rows, q, 1, 16, flip, to);
        if (n >= 8 && q < n) {
            if (q + 8 <= n)
                mix_quads(rows, q, 1, 8, flip, to);
            mix_quads(rows, n - 8, 1, 8, flip, to);
            return;
        }
    } else if (step == 2) {
        for (; q + 16 <= n; q += 16)
            mix_quads(rows, q, 2, 16, flip, to);
        if (n >= 8 && q < n) {
            if (q + 8 <= n)
                mix_quads(rows, q, 2, 8, flip, to);
            mix_quads(rows, n - 8, 2, 8, flip, to);
            return;
        }
    }
#endif
    for (; q < n; ++q)
        for (ptrdiff_t i = 0; i < 4; ++i)
            to[4 * q + i] = (unsigned char)(rows[i][q * step] ^ flip);
}
"""
"""C that copies rows; with a step of 2, it reads no byte past the last needed one."""


def copy_quads(cx: KernelContext) -> str:
    """Return the name of a function ``(rows, n, step, flip, to)`` that interleaves four rows of
    bytes.

    It reads n pixels, ``step`` apart, of each row.
    """
    declare(cx)
    return cx.call("copy_quads", COPY)


def emit_copy(cx: KernelContext, band: Band, channels: int, to: str, flip: int) -> None:
    """Write the copy from ``image`` into ``to`` of the band that begins at output row ``h``.

    The last group of four channels is padded with its first channel; the weights there are 0.

    ```
    unsigned char *row = scratch + 32 + c * 96;
    const ptrdiff_t y = (h + r) * 1 + 0;
    if (y < 0 || y >= 6)
        memset(row, pad, 384);
    else
        copy_quads(rows, 96, 1, 128, row + 0);
    ```
    """
    window, body, copy = band.window, cx.body, copy_quads(cx)
    (_, height, width), (_, stride_h, stride_w) = window.input, window.strides
    size = height * width
    with body.loop("c", channels, step=4):
        body.line(f"unsigned char *row = {to} + c * {band.plane};")
        for top, left in band.phases:
            first, low, high = band.columns(left)
            with body.loop("r", band.rows_read):
                body.line(f"const ptrdiff_t y = (h + r) * {stride_h} + ({top - window.begin[1]});")
                with body.block(f"if (y < 0 || y >= {height})"):
                    body.line(f"memset(row, pad, {4 * band.pitch});")
                with body.block("else"):
                    at = f"c * {size} + y * {width} + ({first + low * stride_w})"
                    body.line(f"const unsigned char *from = image + {at};")
                    rows = ", ".join(_rows(channels, size))
                    body.line(f"const unsigned char *const rows[] = {{ {rows} }};")
                    if low:
                        body.line(f"memset(row, pad, {4 * low});")
                    if high > low:
                        sizes = f"{high - low}, {stride_w}, {flip}"
                        body.line(f"{copy}(rows, {sizes}, row + {4 * low});")
                    if high < band.pitch:
                        body.line(f"memset(row + {4 * high}, pad, {4 * (band.pitch - high)});")
                body.line(f"row += {4 * band.pitch};")


def _rows(channels: int, size: int) -> list[str]:
    """Return the addresses of four channels, starting at ``c``, as C."""
    rows = ["from"]
    for i in range(1, 4):
        always = channels % 4 == 0 or i < channels % 4
        rows.append(f"from + {i * size if always else f'(c + {i} < {channels} ? {i * size} : 0)'}")
    return rows
