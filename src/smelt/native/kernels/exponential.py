"""exp of contiguous floats by vectors; compilers do not vectorize ``lane_math.EXP`` as well.

With 512-bit vectors there is an instruction for powers of two that handles subnormal numbers.
"""

from __future__ import annotations

import numpy as np

from smelt.loops.operators import LANES, Operator
from smelt.native.kernels.extremes import LARGER
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.vector import PRELUDE
from smelt.program.run_sizes import is_empty

CHUNK = 1024
"""The elements that one call computes."""

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

SUMS = """#if LANES >= 8
#define LAST_LANES(v, n) ((vec)((mask)(v) & \\
    (__extension__(mask)PLACES >= (int32_t)(LANES - (ptrdiff_t)(n)))))
static IN_LOOPS float sum_of_lanes(vec v)
{
    float lane[LANES];
    four f;
    *(vec *)lane = v;
    f = *(const four *)lane + *(const four *)(lane + 4);
#if LANES == 16
    f += *(const four *)(lane + 8) + *(const four *)(lane + 12);
#endif
    return (f[0] + f[1]) + (f[2] + f[3]);
}
#endif
"""
"""The last ``n`` lanes of a vector, and the sum of its lanes."""

_ALL = """static NO_INLINE void exp_of_all(const float *x, float *y, ptrdiff_t n)
{
    ptrdiff_t i = 0;
#if LANES >= 8
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const vec low = *(const vec *)(x + i), high = *(const vec *)(x + i + LANES);
        *(vec *)(y + i) = vec_exp(low);
        *(vec *)(y + i + LANES) = vec_exp(high);
    }
#endif
    for (; i < n; ++i)
        y[i] = lane_exp(x[i]);
}
"""


def vector_exponential(cx: KernelContext) -> Operator:
    """Return the operator ``exp`` of the loop language, with a form for vectors.

    Its C functions are added to the context.
    """
    text = in_lanes(cx, f"exp{cx.type(0).f}({{0}})")
    cx.call("LANES", PRELUDE)
    cx.call("larger", LARGER)
    cx.call("vec_exp", EXP)
    return Operator("exponential", text, np.exp, {LANES: "vec_exp({0})"})


def supports(cx: KernelContext) -> bool:
    """True if this file's kernels support the instruction: contiguous float32."""
    return cx.type(0).name == "float" and not cx.view(0) and not is_empty(cx.output_shape())


def emit(cx: KernelContext) -> None:
    """Write a shared loop over calls for ``CHUNK`` elements each.

    ```
    for (ptrdiff_t i = 0; i < 5000; i += 1024) {
        exp_of_all(x0 + i, y0 + i, 5000 - i < 1024 ? 5000 - i : 1024);
    }
    ```
    """
    source, output = cx.input(0), cx.output()
    vector_exponential(cx)
    name, size = cx.call("exp_of_all", _ALL), output.size
    with cx.body.shared_loop("i", size, step=CHUNK):
        left = f"{size} - i < {CHUNK} ? {size} - i : {CHUNK}"
        cx.body.line(f"{name}({source.name} + i, {output.name} + i, {left});")
