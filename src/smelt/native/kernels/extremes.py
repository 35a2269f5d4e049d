"""The largest and the smallest element of a contiguous row, by vectors for float32.

The CPU's max instruction returns its second operand if one is NaN, so NaN is detected separately.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import PRELUDE
from smelt.native.types import CType

LARGER = """#if LANES == 16 && defined(__clang__)
#define LARGER(v, w) ((vec)__builtin_ia32_maxps512(v, w, 4))
#define SMALLER(v, w) ((vec)__builtin_ia32_minps512(v, w, 4))
#elif LANES == 16 && defined(__AVX512F__)
#define LARGER(v, w) ((vec)__builtin_ia32_maxps512_mask(v, w, v, -1, 4))
#define SMALLER(v, w) ((vec)__builtin_ia32_minps512_mask(v, w, v, -1, 4))
#elif LANES == 8 && (defined(__AVX__) || defined(__clang__))
#define LARGER(v, w) ((vec)__builtin_ia32_maxps256(v, w))
#define SMALLER(v, w) ((vec)__builtin_ia32_minps256(v, w))
#elif LANES == 4 && defined(__SSE2__)
#define LARGER LARGER_FOUR
#define SMALLER SMALLER_FOUR
#endif
#define LARGER_FOUR(v, w) ((four)__builtin_ia32_maxps(v, w))
#define SMALLER_FOUR(v, w) ((four)__builtin_ia32_minps(v, w))
"""
"""Max and min that return the second operand if one is NaN or both are 0."""

_ROW = """static NO_INLINE @t NAME(const @t *x, ptrdiff_t n)
{
    @t best = START;
    int odd = 0;
    ptrdiff_t i = 0;
VECTORS    for (; i < n; ++i) {
        const @t v = x[i];
        odd |= v != v;
        best = v ORDER best ? v : best;
    }
    return odd ? NAN : best;
}
"""
_VECTORS = """#ifdef LARGER
    if (n >= LANES) {
        float lane[LANES];
        int32_t bits[LANES];
        const vec end = *(const vec *)(x + n - LANES);
        vec a = *(const vec *)x, b = end, c = a, d = a;
        mask p = (mask)(a != a) | (mask)(b != b), q = p;
        for (i = LANES; i + 4 * LANES <= n; i += 4 * LANES) {
            const vec v0 = *(const vec *)(x + i), v1 = *(const vec *)(x + i + LANES);
            const vec v2 = *(const vec *)(x + i + 2 * LANES);
            const vec v3 = *(const vec *)(x + i + 3 * LANES);
            p |= (mask)(v0 != v0) | (mask)(v1 != v1);
            q |= (mask)(v2 != v2) | (mask)(v3 != v3);
            a = PICK(v0, a), b = PICK(v1, b), c = PICK(v2, c), d = PICK(v3, d);
        }
        for (; i + LANES <= n; i += LANES) {
            const vec v = *(const vec *)(x + i);
            p |= (mask)(v != v);
            a = PICK(v, a);
        }
        *(vec *)lane = PICK(PICK(d, c), PICK(b, a));
        *(mask *)bits = p | q;
        four most = *(const four *)lane;
        for (ptrdiff_t at = 4; at < LANES; at += 4)
            most = PICK_FOUR(*(const four *)(lane + at), most);
        for (ptrdiff_t j = 0; j < LANES; ++j)
            odd |= bits[j];
        for (ptrdiff_t j = 0; j < 4; ++j)
            best = most[j] ORDER best ? most[j] : best;
        i = n;
    }
#endif
"""
"""The part for vectors. The last vector overlaps the previous one, which changes no extreme."""


def extreme_of(cx: KernelContext, type_: CType, order: str) -> str:
    """Return the name of a function of ``(x, n)``: the largest (``>``) or smallest (``<``) element.

    The function returns NaN if an element is NaN, and the identity infinity for no elements.
    """
    stem, pick = ("largest", "LARGER") if order == ">" else ("smallest", "SMALLER")
    name = f"{stem}_{type_.name}"
    cx.call("LANES", PRELUDE)
    vectors = ""
    if type_.name == "float":
        cx.call("larger", LARGER)
        vectors = _VECTORS.replace("PICK", pick)
    text = _ROW.replace("VECTORS", vectors).replace("ORDER", order)
    start = type_.lowest() if order == ">" else type_.highest()
    text = text.replace("START", start).replace("NAME", name)
    return cx.call(name, text.replace("@t", type_.name))
