"""Sums along neighbours, in partial sums of a vector."""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduce import LANES
from smelt.native.types import CType


def joined(step: str) -> str:
    """C that joins lanes by halves, each an operation on vectors."""
    widths = [LANES >> i for i in range(1, LANES.bit_length())]
    loops = [f"    for (ptrdiff_t j = 0; j < {w}; ++j)\n        {step.format(w)}" for w in widths]
    return "\n".join(loops)


def sum_of(cx: KernelContext, type_: CType, expression: str, stem: str) -> str:
    """A support function ``stem(x, n, c)``: the sum of ``expression`` over ``x``, in partial sums.

    The expression is in ``v``, an element, and ``c``.
    """
    name = f"{stem}_{type_.name}"
    t = type_.name
    text = f"""static {t} {name}(const {t} *x, ptrdiff_t n, {t} c)
{{
    {t} lane[{LANES}] = {{ 0 }}, sum = 0;
    const ptrdiff_t whole = n - n % {LANES};
    for (ptrdiff_t i = 0; i < whole; i += {LANES})
        for (ptrdiff_t j = 0; j < {LANES}; ++j) {{
            const {t} v = x[i + j];
            lane[j] += {expression};
        }}
    for (ptrdiff_t i = whole; i < n; ++i) {{
        const {t} v = x[i];
        sum += {expression};
    }}
{joined("lane[j] += lane[j + {}];")}
    (void)c;
    return sum + lane[0];
}}
"""
    return cx.call(name, text)
