"""What a kernel sees from output pixels, gathered in panels of them."""

from __future__ import annotations

import math

from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES, PRELUDE

PANEL = 2 * MOST_LANES
"""Pixels of a panel."""

SPREAD = f"""static void spread_panels(const float *restrict row, float *restrict to,
    ptrdiff_t step, ptrdiff_t count)
{{
    for (; count > 0; count -= {PANEL}, row += {PANEL}, to += step)
        memcpy(to, row, 4 * {PANEL});
}}
"""
"""Copies a row of pixels into panels that are ``step`` apart."""

SECONDS = """#if LANES == 16 && !defined(__clang__)
#define EVENS(v, w) __builtin_shuffle(v, w, __extension__(mask){ \\
    0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 })
#elif LANES == 16
#define EVENS(v, w) __builtin_shufflevector(v, w, \\
    0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#elif LANES == 8 && !defined(__clang__)
#define EVENS(v, w) __builtin_shuffle(v, w, __extension__(mask){ 0, 2, 4, 6, 8, 10, 12, 14 })
#elif LANES == 8
#define EVENS(v, w) __builtin_shufflevector(v, w, 0, 2, 4, 6, 8, 10, 12, 14)
#endif
static inline void copy_seconds(const float *restrict from, float *restrict to,
    ptrdiff_t count)
{
    ptrdiff_t j = 0;
#if LANES >= 8
    for (; j + LANES < count; j += LANES) {
        const vec low = *(const vec *)(from + 2 * j);
        const vec high = *(const vec *)(from + 2 * j + LANES);
        *(vec *)(to + j) = EVENS(low, high);
    }
#endif
#if LANES > 1
    for (; j + 4 < count; j += 4) {
        const four low = *(const four *)(from + 2 * j), high = *(const four *)(from + 2 * j + 4);
        *(four *)(to + j) = MIXED(low, high, 0, 2, 4, 6);
    }
#endif
    for (; j < count; ++j)
        to[j] = from[2 * j];
}
"""
"""Copies every second element; none is read beyond the last of them."""


def gather_function(cx: KernelContext, window: Window, channels: int, most: int) -> str:
    """A function ``(image, to, p, count)`` that fills panels with pixels ``p`` on.

    Panels ``[channel, kernel position][pixel]`` lie one after the other. ``count`` is ``most`` or
    less; pixels beyond them in their last panel are of no meaning.
    """
    cx.call("LANES", PRELUDE)
    cx.call("spread_panels", SPREAD)
    text = _pointwise(window, channels) if window.pointwise else _windowed(cx, window, channels)
    fields = (window.input, window.kernel, window.strides, window.dilations, window.begin)
    letters = zip("ikgdp", (*fields, window.output), strict=False)
    name = f"panels_c{channels}_m{most}_o" + "x".join(map(str, window.output)) + "_"
    name += "_".join(letter + "x".join(map(str, field)) for letter, field in letters)
    head = f"""static void {name}(const float *restrict image, float *restrict to, ptrdiff_t p,
    ptrdiff_t count)
{{
    float row[{most}];
    memset(row, 0, sizeof row);
"""
    return cx.call(name, head + text + "}\n")


def _pointwise(window: Window, channels: int) -> str:
    """Rows of the image itself, copied twice where the last panel is not full."""
    step = channels * PANEL
    return f"""    const ptrdiff_t whole = count - count % {PANEL};
    for (ptrdiff_t c = 0; c < {channels}; ++c, to += {PANEL}) {{
        const float *from = image + c * {window.pixels} + p;
        spread_panels(from, to, {step}, whole);
        if (whole < count) {{
            memcpy(row, from + whole, 4 * (size_t)(count - whole));
            memcpy(to + whole / {PANEL} * {step}, row, 4 * {PANEL});
        }}
    }}
"""


def _windowed(cx: KernelContext, window: Window, channels: int) -> str:
    """By channel and kernel position, the rows of the image that the pixels lie in."""
    (i0, i1, i2), (_, o1, o2) = window.input, window.output
    (k0, k1, k2), (s0, s1, s2) = window.kernel, window.strides
    (d0, d1, d2), (p0, p1, p2) = window.dilations, window.begin
    step = channels * math.prod(window.kernel) * PANEL
    copy = f"for (; j < high; ++j)\n                    at[j] = image[from + j * {s2}];"
    if s2 == 1:
        copy = "for (; j < high; ++j)\n                    at[j] = image[from + j];"
    elif s2 == 2:
        cx.call("copy_seconds", SECONDS)
        copy = (
            "if (j < high)\n"
            "                    copy_seconds(image + from + 2 * j, at + j, high - j);\n"
            "                j = j < high ? high : j;"
        )
    return f"""    const ptrdiff_t first_column = p % {o2}, first_row = p / {o2};
    for (ptrdiff_t c = 0; c < {channels}; ++c)
    for (ptrdiff_t k0 = 0; k0 < {k0}; ++k0)
    for (ptrdiff_t k1 = 0; k1 < {k1}; ++k1)
    for (ptrdiff_t k2 = 0; k2 < {k2}; ++k2, to += {PANEL}) {{
        float *at = row;
        ptrdiff_t w = first_column, r = first_row % {o1}, d = first_row / {o1}, left = count;
        while (left > 0) {{
            const ptrdiff_t n = {o2} - w < left ? {o2} - w : left;
            const ptrdiff_t z = d * {s0} + k0 * {d0} - {p0}, y = r * {s1} + k1 * {d1} - {p1};
            const ptrdiff_t x = w * {s2} + k2 * {d2} - {p2};
            ptrdiff_t j = 0;
            if (z >= 0 && z < {i0} && y >= 0 && y < {i1}) {{
                const ptrdiff_t from = ((c * {i0} + z) * {i1} + y) * {i2} + x;
                const ptrdiff_t low = x < 0 ? (-x + {s2 - 1}) / {s2} : 0;
                const ptrdiff_t end = x < {i2} ? ({i2 - 1} - x) / {s2} + 1 : 0;
                const ptrdiff_t high = end < n ? end : n;
                for (; j < low && j < n; ++j)
                    at[j] = 0;
                {copy}
            }}
            for (; j < n; ++j)
                at[j] = 0;
            at += n, left -= n, w = 0;
            if (++r == {o1})
                r = 0, ++d;
        }}
        spread_panels(row, to, {step}, count);
    }}
"""
