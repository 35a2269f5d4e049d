"""One number at a time: held between two bounds and rounded to even, in a way that vectorizes."""

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
"""Floats beyond 1.5 * 2**23 are whole, so adding that number rounds. NaN becomes ``low``."""


def rounded(cx: KernelContext, value: str, low: int, high: int) -> str:
    """``value``, a float as C, as an integer between bounds of 22 bits at most."""
    return f"{cx.call('rounded', ROUNDED)}({value}, {low}.0f, {high}.0f)"
