"""Clamping and rounding half to even, in C that compilers vectorize."""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext

ROUNDED = """static inline int32_t rounded(float v, float low, float high)
{
    const float held = v > low ? v < high ? v : high : low;
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 0 && !defined(__FAST_MATH__)
    return (int32_t)((held + 12582912.0f) - 12582912.0f);
#else
    return (int32_t)lrintf(held);
#endif
}
"""
"""C that rounds by adding 1.5 * 2**23: floats above 2**23 are whole. NaN becomes ``low``."""


def rounded(cx: KernelContext, value: str, low: int, high: int) -> str:
    """Return the C of ``value``, a float, as a clamped integer; bounds have at most 22 bits."""
    return f"{cx.call('rounded', ROUNDED)}({value}, {low}.0f, {high}.0f)"
