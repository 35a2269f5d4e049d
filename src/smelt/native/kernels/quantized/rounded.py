"""Clamping and rounding half to even, in C that compilers vectorize."""

from __future__ import annotations

import math

from smelt.native.kernels.kernel import KernelContext
from smelt.native.types import CType

ROUNDED = """#if defined(__GNUC__)
__attribute__((unused))
#endif
static inline int32_t rounded(float v, float low, float high)
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


WITHIN = """static inline TYPE within_TYPE(int32_t v)
{
    return (TYPE)(v < LOW ? LOW : v > HIGH ? HIGH : v);
}
"""
"""C that saturates an integer to the values of a type."""

BYTE = """#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SAT) && \\
    defined(__ARM_PCS_VFP) && defined(__GNUC__) && !defined(__FAST_MATH__)
#include <arm_acle.h>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* in the macros of the compiler's header */
static inline TYPE byte_TYPE(float v, int32_t zero)
{
    int32_t bits;
    __asm__("" : "+t"(v)); /* the value is rounded before it is subtracted */
    v = 12582912.0f - v;
    memcpy(&bits, &v, sizeof bits);
    if ((uint32_t)bits > 0xFF800000u) /* NaN with a sign */
        bits = 0x7FC00000;
    return (TYPE)SATURATE(__qsub(0x4B400000 + zero, bits), 8);
}
#pragma GCC diagnostic pop
#else
static inline TYPE byte_TYPE(float v, int32_t zero)
{
    const int32_t byte = rounded(v, -512.0f, 512.0f) + zero;
    return (TYPE)(byte < LOW ? LOW : byte > HIGH ? HIGH : byte);
}
#endif
"""
"""C that rounds to a byte. On Arm, the bits of 1.5 * 2**23 - v are those of that number minus the
rounded v, and for larger, infinite and undefined v they saturate to the same byte as elsewhere."""


BOUNDED_BYTE = """#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SAT) && \\
    defined(__ARM_PCS_VFP) && defined(__GNUC__) && !defined(__FAST_MATH__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* in the macros of the compiler's header */
static inline TYPE bounded_TYPE(float v)
{
    int32_t bits;
    __asm__("" : "+t"(v)); /* the value is rounded before it is added */
    v += 12582912.0f;
    memcpy(&bits, &v, sizeof bits);
    return (TYPE)SATURATE(bits - 0x4B400000, 8);
}
#pragma GCC diagnostic pop
#else
static inline TYPE bounded_TYPE(float v)
{
    return byte_TYPE(v, 0);
}
#endif
"""
"""C that rounds a float below ``EXACT`` to a byte. The bits of 1.5 * 2**23 + v are those of that
number plus the rounded v."""

EXACT = 2**22
"""Floats below this are rounded to a whole number by adding 1.5 * 2**23."""


def saturated(
    cx: KernelContext, value: str, zero: str, type_: CType, largest: float = math.inf
) -> str:
    """Return the C of ``value``, a float, rounded and plus ``zero``, saturated to ``type_``.

    ``largest`` is a limit of absolute values. Below ``EXACT``, bytes take fewer instructions.
    """
    bits = 8 * type_.size
    low = -(1 << bits - 1) if type_.signed else 0
    name, limit = type_.name, 1 << bits + 1

    def function(text: str) -> str:
        """Return the C ``text`` for the type."""
        ends = text.replace("LOW", str(low)).replace("HIGH", str(low + (1 << bits) - 1))
        saturate = "__ssat" if type_.signed else "(int32_t)__usat"
        return ends.replace("TYPE", name).replace("SATURATE", saturate)

    if bits > 8:
        within = cx.call(f"within_{name}", function(WITHIN))
        return f"{within}({rounded(cx, value, -limit, limit)} + {zero})"
    cx.call("rounded", ROUNDED)
    byte = cx.call(f"byte_{name}", function(BYTE))
    if largest < EXACT - 1 and zero == "0":
        bounded = cx.call(f"bounded_{name}", function(BOUNDED_BYTE))
        return f"{bounded}({value})"
    return f"{byte}({value}, {zero})"
