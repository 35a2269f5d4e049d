"""Sums of contiguous rows, with as many partial sums as a vector has lanes."""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduce import LANES
from smelt.native.types import CType


def by_halves(step: str) -> str:
    """Return the C that combines lanes by halves, each step a vector operation."""
    widths = [LANES >> i for i in range(1, LANES.bit_length())]
    loops = [f"    for (ptrdiff_t j = 0; j < {w}; ++j)\n        {step.format(w)}" for w in widths]
    return "\n".join(loops)


def sum_of(cx: KernelContext, type_: CType, expression: str, stem: str, when: str = "") -> str:
    """Return the name of a function ``stem(x, n, c)`` that sums ``expression`` over a row.

    The expression is of each element ``v`` and of ``c``. ``when`` is a preprocessor condition.
    """
    name, t = f"{stem}_{type_.name}", type_.name
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
{by_halves("lane[j] += lane[j + {}];")}
    (void)c;
    return sum + lane[0];
}}
"""
    return call_when(cx, name, text, when)


def call_when(cx: KernelContext, name: str, text: str, when: str) -> str:
    """Return the name of a function that is compiled only under ``when``.

    It differs from the name of the same function without condition, which other kernels may call.
    """
    if not when:
        return cx.call(name, text)
    other = f"{name}_or"
    return cx.call(other, f"#if {when}\n{text.replace(name, other, 1)}#endif\n")
