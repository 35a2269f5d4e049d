"""Pack the elements that a kernel reads for output pixels into panels of pixels."""

from __future__ import annotations

import math

from smelt.native.kernels.convolution.padded_copy import copy_seconds
from smelt.native.kernels.convolution.parts import padded_rows
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES, PRELUDE

PANEL = 2 * MOST_LANES
"""The pixels of a panel."""

SPREAD = f"""static void spread_panels(const float *restrict row, float *restrict to,
    ptrdiff_t step, ptrdiff_t count)
{{
    for (; count > 0; count -= {PANEL}, row += {PANEL}, to += step)
        memcpy(to, row, 4 * {PANEL});
}}
"""
"""Copies a row of pixels into panels that are ``step`` apart."""


def gather_function(cx: KernelContext, window: Window, channels: int, most: int) -> str:
    """Return the name of a function ``(image, to, p, count)`` that packs pixels from ``p`` on into
    panels.

    Panels ``[channel, kernel position][pixel]`` follow each other. ``count`` is at most ``most``;
    the rest of the last panel is undefined.
    """
    cx.call("LANES", PRELUDE)
    cx.call("spread_panels", SPREAD)
    if window.pointwise:
        text = _pointwise(window, channels)
    elif window.flat and window.strides == (1, 1, 1) and _plane(window, most) <= LARGEST_PLANE:
        text = _shifted_copy(cx, window, channels, most)
    else:
        text = _window_copy(cx, window, channels)
    fields = (window.input, window.kernel, window.strides, window.dilations, window.begin)
    letters = zip("ikgdp", (*fields, window.output), strict=False)
    name = f"panels_c{channels}_m{most}_o" + "x".join(map(str, window.output)) + "_"
    name += "_".join(letter + "x".join(map(str, field)) for letter, field in letters)
    head = f"""static void {name}(const float *restrict image, float *restrict to, ptrdiff_t p,
    ptrdiff_t count)
{{
    float row[{most + MOST_LANES}];
    memset(row, 0, sizeof row);
"""
    return cx.call(name, head + text + "}\n")


def _pointwise(window: Window, channels: int) -> str:
    """Return the C that packs rows of the image; a partial last panel takes a second copy."""
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


SEGMENT = """static inline void copy_segment(const float *from, float *to, ptrdiff_t count)
{
#if LANES > 1
    for (ptrdiff_t j = 0; j < count; j += LANES)
        *(vec *)(to + j) = *(const vec *)(from + j);
#else
    for (ptrdiff_t j = 0; j < count; ++j)
        to[j] = from[j];
#endif
}
"""
"""Copies whole vectors, including elements after the segment."""


LARGEST_PLANE = 1 << 14
"""The most floats of a channel's padded rows, which lie on the stack."""


def _plane(window: Window, most: int) -> int:
    """Return the elements of the padded rows that ``most`` consecutive pixels read.

    This includes the elements that the last vector of a copy reads beyond them.
    """
    (_, out_height, out_width), (_, kernel_h, kernel_w), (_, dilation_h, dilation_w) = (
        window.output,
        window.kernel,
        window.dilations,
    )
    rows = min(out_height, (most - 2) // out_width + 2) + (kernel_h - 1) * dilation_h
    return rows * (out_width + (kernel_w - 1) * dilation_w) + MOST_LANES


def _shifted_copy(cx: KernelContext, window: Window, channels: int, most: int) -> str:
    """Return the C that copies the rows of a channel with padding into ``plane``.

    Then ``plane`` is copied once for each kernel position, shifted by that position.
    """
    cx.call("copy_segment", SEGMENT)
    (_, kernel_h, kernel_w), (_, dilation_h, dilation_w), out_width = (
        window.kernel,
        window.dilations,
        window.output[2],
    )
    pitch, more = out_width + (kernel_w - 1) * dilation_w, (kernel_h - 1) * dilation_h
    copy = padded_rows(cx, window, pitch)
    step = channels * kernel_h * kernel_w * PANEL
    return f"""    float plane[{_plane(window, most)}];
    const ptrdiff_t first = p % {out_width}, top = p / {out_width};
    const ptrdiff_t rows_read = (first + count - 1) / {out_width} + 1 + {more};
    memset(plane, 0, sizeof plane);
    for (ptrdiff_t c = 0; c < {channels}; ++c) {{
        {copy}(image + c * {window.plane}, plane, top - {window.begin[1]}, rows_read);
        for (ptrdiff_t k1 = 0; k1 < {kernel_h}; ++k1)
        for (ptrdiff_t k2 = 0; k2 < {kernel_w}; ++k2, to += {PANEL}) {{
            const float *from = plane + k1 * {dilation_h * pitch} + k2 * {dilation_w};
            ptrdiff_t w = first;
            for (ptrdiff_t q = 0; q < count; from += {pitch}) {{
                const ptrdiff_t n = {out_width} - w < count - q ? {out_width} - w : count - q;
                copy_segment(from + w, row + q, n);
                q += n, w = 0;
            }}
            spread_panels(row, to, {step}, count);
        }}
    }}
"""


def _copy(cx: KernelContext, step: int) -> str:
    """Return the C that copies pixels ``step`` apart, from ``j`` to ``high``."""
    if step == 2:
        copy_seconds(cx)
        return (
            "if (j < high)\n"
            "                    copy_seconds(image + from + 2 * j, at + j, high - j);\n"
            "                j = j < high ? high : j;"
        )
    pixel = "j" if step == 1 else f"j * {step}"
    return f"for (; j < high; ++j)\n                    at[j] = image[from + {pixel}];"


def _window_copy(cx: KernelContext, window: Window, channels: int) -> str:
    """Return the C that copies the inputs of ``count`` pixels for each channel and kernel position.

    It copies row by row of the output. ``low`` to ``high`` are the pixels of a row whose input is
    inside of the image; the others are 0.
    """
    (depth, height, width), (_, out_height, out_width) = window.input, window.output
    (kernel_d, kernel_h, kernel_w), (stride_d, stride_h, stride_w) = window.kernel, window.strides
    dilation_d, dilation_h, dilation_w = window.dilations
    begin_d, begin_h, begin_w = window.begin
    step, copy = channels * math.prod(window.kernel) * PANEL, _copy(cx, stride_w)
    return f"""    const ptrdiff_t first_column = p % {out_width}, first_row = p / {out_width};
    for (ptrdiff_t c = 0; c < {channels}; ++c)
    for (ptrdiff_t k0 = 0; k0 < {kernel_d}; ++k0)
    for (ptrdiff_t k1 = 0; k1 < {kernel_h}; ++k1)
    for (ptrdiff_t k2 = 0; k2 < {kernel_w}; ++k2, to += {PANEL}) {{
        float *at = row;
        ptrdiff_t w = first_column, r = first_row % {out_height}, d = first_row / {out_height};
        ptrdiff_t left = count;
        while (left > 0) {{
            const ptrdiff_t n = {out_width} - w < left ? {out_width} - w : left;
            const ptrdiff_t z = d * {stride_d} + k0 * {dilation_d} - {begin_d};
            const ptrdiff_t y = r * {stride_h} + k1 * {dilation_h} - {begin_h};
            const ptrdiff_t x = w * {stride_w} + k2 * {dilation_w} - {begin_w};
            ptrdiff_t j = 0;
            if (z >= 0 && z < {depth} && y >= 0 && y < {height}) {{
                const ptrdiff_t from = ((c * {depth} + z) * {height} + y) * {width} + x;
                const ptrdiff_t low = x < 0 ? (-x + {stride_w - 1}) / {stride_w} : 0;
                const ptrdiff_t end = x < {width} ? ({width - 1} - x) / {stride_w} + 1 : 0;
                const ptrdiff_t high = end < n ? end : n;
                for (; j < low && j < n; ++j)
                    at[j] = 0;
                {copy}
            }}
            for (; j < n; ++j)
                at[j] = 0;
            at += n, left -= n, w = 0;
            if (++r == {out_height})
                r = 0, ++d;
        }}
        spread_panels(row, to, {step}, count);
    }}
"""
