"""Combine the rows of a pooling window column by column, by maximum or sum."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.kernel import KernelContext

SHORT_LOOP = """#if defined(__clang__)
#define SHORT_LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define SHORT_LOOP
#endif
"""
"""A pragma before short loops that clang should not vectorize."""

DOWN = """#if LANES >= 8
static NO_INLINE int NAME(const float *from, ptrdiff_t deep, ptrdiff_t plane, ptrdiff_t high,
    ptrdiff_t row, float *to, ptrdiff_t left, ptrdiff_t n, ptrdiff_t pitch)
{
    typedef int32_t four_masks __attribute__((vector_size(16), aligned(4), may_alias));
    mask odd = { 0 };
    four_masks odd_four = { 0 };
    int found = 0;
    SHORT_LOOP
    for (ptrdiff_t j = 0; j < left; ++j)
        to[j] = START;
    if (deep <= 0 || high <= 0)
        n = 0;
    to += left;
    for (ptrdiff_t i = 0; i < n && n >= LANES; i += LANES) {
        i = i + LANES > n ? n - LANES : i;
        vec a = { 0 };
        a += START;
        for (ptrdiff_t d = 0; d < deep; ++d)
            for (ptrdiff_t k = 0; k < high; ++k) {
                const vec v = *(const vec *)(from + d * plane + k * row + i);
                a = STEP;
            }
        *(vec *)(to + i) = a;
    }
    for (ptrdiff_t i = 0; i < n && n >= 4 && n < LANES; i += 4) {
        i = i + 4 > n ? n - 4 : i;
        four a = { 0 };
        a += START;
        for (ptrdiff_t d = 0; d < deep; ++d)
            for (ptrdiff_t k = 0; k < high; ++k) {
                const four v = *(const four *)(from + d * plane + k * row + i);
                a = FEW;
            }
        *(four *)(to + i) = a;
    }
    for (ptrdiff_t i = 0; i < n && n < 4; ++i) {
        float a = START;
        for (ptrdiff_t d = 0; d < deep; ++d)
            for (ptrdiff_t k = 0; k < high; ++k) {
                const float v = from[d * plane + k * row + i];
                a = ONE;
            }
        to[i] = a;
    }
    SHORT_LOOP
    for (ptrdiff_t j = n; j < pitch - left; ++j)
        to[j] = START;
ENDING}
#endif
"""


@dataclass(frozen=True, slots=True)
class Joining:
    """How two numbers ``a`` and ``v`` are combined, as C: in vectors, in vectors of four, and
    singly.

    ``start`` is the identity. ``repeats`` is True if an element may be combined twice.
    """

    name: str
    vectors: str
    four: str
    one: str
    start: str
    repeats: bool


LARGEST = Joining(
    "largest", "LARGER(v, a)", "LARGER_FOUR(v, a)", "v > a || v != v ? v : a", "(-INFINITY)", True
)
SUM = Joining("sum", "a + v", "a + v", "a + v", "0", False)


def declare_down(cx: KernelContext, joining: Joining) -> str:
    """Return the name of the function that combines the rows of a window.

    If ``joining.repeats``, the function returns whether an element is NaN.
    """
    cx.call("SHORT_LOOP", SHORT_LOOP)
    name = f"{joining.name}_down"
    text = DOWN.replace("NAME", name).replace("START", joining.start)
    vectors, four, one, ending = joining.vectors, joining.four, joining.one, ""
    if joining.repeats:
        test = "v != v"
        text = text.replace(
            "                a = STEP;",
            f"                odd |= (mask)({test});\n                a = STEP;",
        )
        text = text.replace(
            "                a = FEW;",
            f"                odd_four |= (four_masks)({test});\n                a = FEW;",
        )
        text = text.replace(
            "                a = ONE;",
            f"                found |= {test};\n                a = ONE;",
        )
        ending = """    for (ptrdiff_t j = 0; j < LANES; ++j)
        found |= odd[j];
    for (ptrdiff_t j = 0; j < 4; ++j)
        found |= odd_four[j];
    return found;
"""
    else:
        unused = ("    typedef int32_t", "    mask odd", "    four_masks odd", "    int found")
        text = "".join(
            line for line in text.splitlines(keepends=True) if not line.startswith(unused)
        ).replace("static NO_INLINE int", "static NO_INLINE void")
    text = text.replace("STEP", vectors).replace("FEW", four).replace("ONE", one)
    return cx.call(name, text.replace("ENDING", ending))
