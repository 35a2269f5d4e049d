"""Depthwise convolutions with tall kernels: each loaded vector serves several output rows."""

from __future__ import annotations

from typing import cast

from smelt.native.emit.writer import Writer
from smelt.native.kernels.convolution.window import Window
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import MOST_LANES
from smelt.program.run_sizes import ceil_div

ROWS = 7
"""Output rows at a time: their sums, a column of weights and a loaded vector fit 16 registers."""

FEWEST, MOST = 5, 8
"""The fewest and the most kernel rows. With fewer rows, loads are as fast as multiplications."""


def supports(window: Window) -> bool:
    """True if neighboring output rows read neighboring input rows."""
    (_, kernel_h, _), (_, stride_h, stride_w), (_, dilation_h, _) = (
        window.kernel,
        window.strides,
        window.dilations,
    )
    return FEWEST <= kernel_h <= MOST and stride_h == stride_w == dilation_h == 1


def pitch_of(window: Window) -> int:
    """Return the elements between rows of results: whole vectors."""
    return cast(int, ceil_div(window.output[2], MOST_LANES) * MOST_LANES)


def emit(cx: KernelContext, window: Window, rows: int, pitch: int) -> None:
    """Write the sums of ``rows`` output rows to the C array ``results``.

    The C pointer ``from`` is the first input row; input rows are ``pitch`` elements apart.
    """
    (_, _, kernel_w), dw = window.kernel, window.dilations[2]
    name = _declare(cx, window.kernel[1], rows)
    with cx.body.block(f"for (ptrdiff_t q = 0; q < {window.output[2]}; q += LANES)"):
        arguments = (
            f"from + q, {pitch}, k, {kernel_w}, {dw}, start, results + q, {pitch_of(window)}"
        )
        cx.body.line(f"{name}({arguments});")


def _declare(cx: KernelContext, tall: int, rows: int) -> str:
    """Return the name of the function for a kernel of ``tall`` rows, which runs
    column by column."""
    out, name = Writer(), f"depthwise_{tall}_{rows}"
    out.line(f"static NO_INLINE void {name}(const float *restrict from, ptrdiff_t pitch,")
    out.line("    const float *restrict k, ptrdiff_t kn, ptrdiff_t apart, float start,")
    with out.block("    float *restrict to, ptrdiff_t next)"):
        for r in range(rows):
            out.line(f"vec s{r} = {{ 0 }};")
        for r in range(rows):
            out.line(f"s{r} += start;")
        with out.loop("x", "kn"):
            out.line("const float *f = from + x * apart;")
            for y in range(
                tall
            ):  # "+ 0" would be an addition, because it changes -0; "- 0" is folded away
                out.line(f"vec k{y} = k[{y} * kn + x] - (vec){{ 0 }};")
                out.line(f"KEEP_IN_REGISTER(k{y});")
            for i in range(rows + tall - 1):
                out.line(f"const vec v{i} = *(const vec *)(f + {i} * pitch);")
                for r in range(max(0, i - tall + 1), min(rows, i + 1)):
                    out.line(f"s{r} += k{i - r} * v{i};")
        for r in range(rows):
            out.line(f"*(vec *)(to + {r} * next) = s{r};")
    return cx.call(name, out.text())
