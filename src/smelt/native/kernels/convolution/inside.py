"""Skip the positions of a dilated kernel that read only padding.

A kernel dilated by 18 over a 33 x 33 image reads padding at every second position. The kernel rows
that read the image are found per band of output rows, the columns per tile of pixels.
"""

from __future__ import annotations

import numpy as np

from smelt.native.emit.writer import Writer
from smelt.native.kernels.convolution.parts import constant_weights
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.reduction_loop import ReductionLoop

INSIDE = ("low1", "high1", "low2", "high2")
"""The C variables of the first and the end row and column of the kernel that read the image."""

WORTH = 8
"""Skipping pays if the padding is at least one WORTH-th of an image dim."""


def may_skip_padding(instance: Instance, window: Window) -> bool:
    """True if the kernel is dilated, the padding wide, and all weights finite.

    The product of a non-finite weight with padding is NaN and must not be skipped.
    """
    weights = constant_weights(instance)
    dims = zip(window.input, window.begin, window.dilations, window.kernel, strict=True)
    is_padding_wide = any(
        isinstance(size, int) and dilation > 1 and taps > 1 and WORTH * begin >= size
        for size, begin, dilation, taps in dims
    )
    return is_padding_wide and weights is not None and bool(np.isfinite(weights).all())


def declare_rows(body: Writer, window: Window, rows: int) -> None:
    """Declare ``low1`` and ``high1`` for ``rows`` of the output from ``h`` on."""
    stride = window.strides[1]
    first = f"h * {stride} - {window.begin[1]}"
    _declare(body, window, 1, first, f"{first} + {(rows - 1) * stride}")


def declare_columns(body: Writer, window: Window, pixels: int) -> None:
    """Declare ``low2`` and ``high2`` for ``pixels`` from column ``q`` on, which may span rows."""
    step, begin, out_width = window.strides[2], window.begin[2], window.output[2]
    body.line(f"const int wraps = q + {pixels} > {out_width};")
    last = f"(wraps ? {out_width - 1} : q + {pixels - 1})"
    _declare(body, window, 2, f"(wraps ? 0 : q) * {step} - {begin}", f"{last} * {step} - {begin}")


def _declare(body: Writer, window: Window, dim: int, least: str, most: str) -> None:
    """Declare ``low`` and ``high`` of ``dim`` for windows that begin between ``least`` and
    ``most``.

    ``low`` is the first kernel position that is inside of the image for a window at ``most``,
    ``high`` the end of the positions that are inside for a window at ``least``.
    """
    size, kernel, step = window.input[dim], window.kernel[dim], window.dilations[dim]
    body.line(f"const ptrdiff_t least{dim} = {least}, most{dim} = {most};")
    body.line(f"const ptrdiff_t low{dim} = most{dim} < 0 ? ({step - 1} - most{dim}) / {step} : 0;")
    positions_inside = f"({size - 1} - least{dim}) / {step} + 1"
    body.line(f"const ptrdiff_t inside{dim} = least{dim} < {size} ? {positions_inside} : 0;")
    body.line(f"const ptrdiff_t high{dim} = inside{dim} < {kernel} ? inside{dim} : {kernel};")


def inside_loop(window: Window, width: int) -> ReductionLoop:
    """Return the reduction loop over channels and the kernel positions inside of the image.

    Panels have ``width`` filters.
    """
    (_, kernel_h, kernel_w), step = window.kernel, window.dilations[2]
    return ReductionLoop(
        name=f"inside{kernel_h}x{kernel_w}",
        parameters="ptrdiff_t cn, ptrdiff_t plane, ptrdiff_t pitch, const float *restrict b, "
        "const float *restrict a, const ptrdiff_t *restrict at, "
        + ", ".join(f"ptrdiff_t {name}" for name in INSIDE),
        heads=(
            "for (ptrdiff_t i = 0; i < cn; ++i)",
            "for (ptrdiff_t k = low1; k < high1; ++k)",
            "for (ptrdiff_t x = low2; x < high2; ++x)",
        ),
        steps=(("a@[o]", "w"),),
        before=f"const ptrdiff_t o = i * plane + k * pitch + x * {step};\n    "
        f"    const float *w = b + ((i * {kernel_h} + k) * {kernel_w} + x) * {width};",
        row_start="const float *a@ = a + at[@];",
    )
