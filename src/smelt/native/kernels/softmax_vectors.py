"""Rows of a Softmax by vectors of floats; the padding of a last vector adds 0 to the sum."""

from __future__ import annotations

from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.types import CType
from smelt.program.run_sizes import surely_below

WHEN = "LANES >= 8"

EXP = """#if LANES == 16
#define PLACES { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
#elif LANES == 8
#define PLACES { 0, 1, 2, 3, 4, 5, 6, 7 }
#endif
#if LANES == 16 && defined(__clang__)
#define BY_POWERS(v, n) ((vec)__builtin_ia32_scalefps512_mask(v, n, v, 65535, 4))
#elif LANES == 16
#define BY_POWERS(v, n) ((vec)__builtin_ia32_scalefps512_mask(v, n, v, -1, 4))
#endif
#if LANES >= 8
typedef uint32_t words_of_vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
static IN_LOOPS vec vec_exp(vec x)
{
    const vec zero = { 0 }, c = SMALLER(zero + 89.0f, LARGER(zero - 104.0f, x));
    const vec shifted = c * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
    const vec r = (c - n * 0.693359375f) + n * 2.12194440e-4f;
    vec p = r * 2.76289344e-3f + 1.67375617e-2f;
#if LANES == 8
    const words_of_vec bits = (words_of_vec)shifted, less = (~bits >> 16) & 64u;
    const words_of_vec steps = (words_of_vec)(x < zero - 87.33654f) & 0x20800000u;
#endif
    p = p * r + 8.33367854e-2f;
    p = p * r + 3.33330392e-1f;
    p = p * r + 0.99999988f;
    p = p * r + 2.0f;
    p = p * r + 2.0f;
#if LANES == 8
    p = p * (vec)((bits + 126u + less) << 23) + (vec)steps;
    return (vec)((words_of_vec)p - ((less << 23) | steps));
#else
    return BY_POWERS(p, n - 1.0f);
#endif
}
#endif
"""
"""The function of ``lane_math.EXP`` for a vector."""

_SUM = """#if LANES >= 8
static NO_INLINE float NAME(const float *x, ptrdiff_t n, float topPARAMETER)
{
    float lane[LANES] = { 0 }, sum = 0;
    if (n < LANES) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            const float e = lane_exp(x[i] - top);
            ONEsum += e;
        }
        return sum;
    }
    const vec end = vec_exp(*(const vec *)(x + n - LANES) - top), zero = { 0 };
    vec s0 = zero, s1 = zero;
    ptrdiff_t i = 0;
    four f;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vec e0 = vec_exp(*(const vec *)(x + i) - top);
        const vec e1 = vec_exp(*(const vec *)(x + i + LANES) - top);
        STOREs0 += e0;
        s1 += e1;
    }
    if (i + LANES <= n) {
        const vec e0 = vec_exp(*(const vec *)(x + i) - top);
        KEEPs0 += e0;
        i += LANES;
    }
    if (i < n) {
        const mask places = PLACES;
        s1 += (vec)((mask)end & (places >= (int32_t)(LANES - (n - i))));
        END
    }
    *(vec *)lane = s0 + s1;
    f = *(const four *)lane + *(const four *)(lane + 4);
#if LANES == 16
    f += *(const four *)(lane + 8) + *(const four *)(lane + 12);
#endif
    return (f[0] + f[1]) + (f[2] + f[3]);
}
#endif
"""
"""C for a row. The remainder is the end of a vector that is read before the first store, because
the result may overwrite the row."""

_STORE = """*(vec *)(y + i) = e0;
        *(vec *)(y + i + LANES) = e1;
        """


FEWEST = 16
"""The fewest elements of a row."""


def supports(type_: CType, count: int) -> bool:
    """True if this file's kernels support the instruction: float32 rows that fill a vector.

    A row of run-time size qualifies, too.
    """
    return type_.name == "float" and not surely_below(count, FEWEST)


def emit(cx: KernelContext, count: int) -> None:
    """Write one row ``x`` of ``count`` elements to ``y``, which may be ``x``."""
    body, top = cx.body, extreme_of(cx, cx.type(0), ">")
    in_lanes(cx, "expf(x)")
    cx.call("vec_exp", EXP)
    body.line(f"const float top = {top}(x, {count});")
    if cx.instruction.op == "Softmax":
        text = _SUM.replace("PARAMETER", ", float *y").replace("STORE", _STORE)
        text = text.replace("KEEP", "*(vec *)(y + i) = e0;\n        ")
        text = text.replace("END", "*(vec *)(y + n - LANES) = end;").replace(
            "ONE", "y[i] = e;\n            "
        )
        name = cx.call("vec_powers", text.replace("NAME", "vec_powers"))
        body.line(f"const float share = 1 / {name}(x, {count}, top, y);")
        with body.loop("i", count):
            body.line("y[i] *= share;")
        return
    text = _SUM.replace("PARAMETER", "").replace("STORE", "").replace("KEEP", "")
    text = text.replace("        END\n", "").replace("ONE", "")
    name = cx.call("vec_sum_exp", text.replace("NAME", "vec_sum_exp"))
    body.line(f"const float less = logf({name}(x, {count}, top));")
    with body.loop("i", count):
        body.line("y[i] = x[i] - top - less;")
