"""Copy rows of a plane with their padding, by C functions whose sizes are arguments.

Calling memcpy takes longer than copying a short row, so rows are copied in whole vectors where
reading beyond the row is allowed. Elements written beyond a row are overwritten later.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import EVENS_AND_ODDS, PRELUDE, SECONDS

_ROW = """static inline void copy_row(const float *from, float *to, ptrdiff_t n, int beyond)
{
#if LANES > 1
    if (beyond) {
        for (ptrdiff_t j = 0; j < n; j += LANES)
            *(vec *)(to + j) = *(const vec *)(from + j);
        return;
    }
#endif
    (void)beyond;
    memcpy(to, from, 4 * (size_t)n);
}
static inline ptrdiff_t in_vectors(ptrdiff_t n)
{
    return (n + LANES - 1) / LANES * LANES;
}
"""
"""Copies whole vectors if both arrays may be accessed ``beyond`` the row."""

_PLANE = """static void padded_plane(const float *restrict image, float *restrict to,
    ptrdiff_t height, ptrdiff_t width, ptrdiff_t y, ptrdiff_t x, ptrdiff_t rows, ptrdiff_t step,
    ptrdiff_t pitch, ptrdiff_t across)
{
    ptrdiff_t low = x < 0 ? (across - 1 - x) / across : 0;
    ptrdiff_t high = x < width ? (width - 1 - x) / across + 1 : 0;
    ptrdiff_t first = y < 0 ? (step - 1 - y) / step : 0;
    ptrdiff_t end = y < height ? (height - 1 - y) / step + 1 : 0;
    end = end < rows ? end : rows;
    high = high < pitch ? high : pitch;
    memset(to, 0, 4 * (size_t)(rows * pitch));
    for (ptrdiff_t r = first; r < end && low < high; ++r) {
        const ptrdiff_t at = (y + r * step) * width + x + low * across, n = high - low;
        float *row = to + r * pitch + low;
        if (across == 1) {
            copy_row(image + at, row, n, at + in_vectors(n) <= height * width);
#if LANES > 1
            const ptrdiff_t spare = in_vectors(n) - n, right = pitch - high;
            const ptrdiff_t gap = r + 1 < end ? pitch - n : right > spare ? right : spare;
            for (ptrdiff_t j = 0; j < gap; j += LANES)
                *(vec *)(row + n + j) = __extension__(vec){ 0 };
#endif
        } else if (across == 2) {
            copy_seconds(image + at, row, n);
        } else {
            for (ptrdiff_t q = 0; q < n; ++q)
                row[q] = image[at + q * across];
        }
    }
}
"""


def padded_plane(cx: KernelContext) -> str:
    """Return the name of a function ``(image, to, height, width, y, x, rows, step, pitch,
    across)``.

    It writes ``rows`` rows of ``pitch`` elements: every ``step``-th row and ``across``-th column of
    a plane from row ``y`` and column ``x`` on, with 0 outside. It may write a vector beyond them.
    """
    _declare_row(cx)
    copy_seconds(cx)
    return cx.call("padded_plane", _PLANE)


def copy_seconds(cx: KernelContext) -> str:
    """Return the name of a function ``(from, to, count)`` that copies every second element."""
    cx.call("LANES", PRELUDE)
    cx.call("EVENS_AND_ODDS", EVENS_AND_ODDS)
    return cx.call("copy_seconds", SECONDS)


def _declare_row(cx: KernelContext) -> None:
    """Add the function that copies a row."""
    cx.call("LANES", PRELUDE)
    cx.call("copy_row", _ROW)


_DENSE = """#if defined(__GNUC__)
__attribute__((unused))
#endif
static void dense_rows(const float *from, ptrdiff_t pitch, float *to, ptrdiff_t rows,
    ptrdiff_t n, ptrdiff_t room)
{
    for (; rows > 0; --rows, from += pitch, to += n, room -= n)
        copy_row(from, to, n, in_vectors(n) <= room);
}
"""


def dense_rows(cx: KernelContext) -> str:
    """Return the name of a function ``(from, pitch, to, rows, n, room)`` that packs rows of ``n``
    elements.

    The rows are ``pitch`` apart; ``room`` elements may be written.
    """
    _declare_row(cx)
    return cx.call("dense_rows", _DENSE)
