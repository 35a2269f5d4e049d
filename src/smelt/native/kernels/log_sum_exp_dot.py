"""DotGeneral in the log domain: ``c[m, n] = log(sum over k of exp(a[m, k] + b[k, n]))``.

Each sum is relative to its largest term, so nothing overflows. One call computes a row of the left
operand times a panel of columns.
"""

from __future__ import annotations

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.types import CType

PANEL = 64
"""The most columns of a panel, whose maxima and sums are arrays on the stack."""


def panel_function(cx: KernelContext, type_: CType) -> str:
    """Return the name of the function of one row and at most ``PANEL`` columns; strides are
    parameters.
    """
    t, f = type_.name, type_.f
    name = f"log_sum_exp_{t}"
    out = Writer()
    out.line(f"static void {name}(ptrdiff_t kn, const {t} *restrict a, ptrdiff_t ak,")
    out.line(
        f"    const {t} *restrict b, ptrdiff_t bk, ptrdiff_t bn, {t} *restrict c, ptrdiff_t n)"
    )
    with out.block(""):
        out.line(f"{t} top[{PANEL}], sum[{PANEL}];")
        with out.loop("j", "n"):
            out.line("top[j] = -INFINITY, sum[j] = 0;")
        with out.loop("k", "kn"), out.loop("j", "n"):
            out.line(f"const {t} v = a[k * ak] + b[k * bk + j * bn];")
            out.line("top[j] = (v > top[j] || v != v) ? v : top[j];")
        with out.loop("j", "n"):
            out.line("top[j] = top[j] - top[j] == 0 ? top[j] : 0;")
        with out.loop("k", "kn"), out.loop("j", "n"):
            out.line(in_lanes(cx, f"sum[j] += exp{f}(a[k * ak] + b[k * bk + j * bn] - top[j]);"))
        with out.loop("j", "n"):
            out.line(f"c[j] = top[j] + log{f}(sum[j]);")
    return cx.call(name, out.text())
