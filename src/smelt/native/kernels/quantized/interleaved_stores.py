"""Stores that interleave four vectors, each of which has the results of every fourth pixel.

Results are stored as bytes, or as 32-bit sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.quantized.integer_vectors import are_small, within
from smelt.native.kernels.quantized.operands import Requantization

STORE_BYTES = """#if SUMS > 1 && !defined(TRANSPOSED)
typedef unsigned char all_bytes __attribute__((vector_size(4 * SUMS), may_alias));
#if SUMS == 8
#define TRANSPOSED(v) TRANSPOSED_BY(v, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, \\
    16, 20, 24, 28, 17, 21, 25, 29, 18, 22, 26, 30, 19, 23, 27, 31)
#else
#define TRANSPOSED(v) TRANSPOSED_BY(v, 0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15)
#endif
#if defined(__clang__)
#define TRANSPOSED_BY(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define TRANSPOSED_BY(v, ...) __builtin_shuffle(v, __extension__(all_bytes){ __VA_ARGS__ })
#endif
#endif
static IF_CALLED inline void NAME(unsigned char *p, sums a, sums b, sums c, sums d,
    float factor,PARAMETER const int32_t *last)
{
#if SUMS > 1
    const int32_t zero = last[0];
    const pairs ab = PACKED_PAIRS(NEAREST(WITHIN((REAL(a)FRACTION) * factor)) + zero,
        NEAREST(WITHIN((REAL(b)FRACTION) * factor)) + zero);
    const pairs cd = PACKED_PAIRS(NEAREST(WITHIN((REAL(c)FRACTION) * factor)) + zero,
        NEAREST(WITHIN((REAL(d)FRACTION) * factor)) + zero);
    const all_bytes bytes = (all_bytes)PACKED_BYTES(ab, cd);
    *(sums *)p = (sums)TRANSPOSED(bytes) ^ last[1];
#else
    const sums all[] = { a, b, c, d };
    for (ptrdiff_t i = 0; i < 4; ++i)
        p[i] = byte_of(((float)all[i]FRACTION) * factor, last);
#endif
}
"""
"""C that stores bytes; each lane's sixteen bytes, four per vector, are transposed."""


STORE_SUMS = """#if SUMS > 1 && !defined(WEAVE)
#if defined(__clang__)
#define WEAVE(to, a, b, ...) const sums to = __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define WEAVE(to, a, b, ...) \\
    const sums to##_order = { __VA_ARGS__ }; \\
    const sums to = __builtin_shuffle(a, b, to##_order)
#endif
#endif
static IF_CALLED inline void store_four_sums(int32_t *p, sums a, sums b, sums c, sums d)
{
#if SUMS == 8
    WEAVE(ab, a, b, 0, 8, 1, 9, 4, 12, 5, 13);
    WEAVE(cd, c, d, 0, 8, 1, 9, 4, 12, 5, 13);
    WEAVE(ab_high, a, b, 2, 10, 3, 11, 6, 14, 7, 15);
    WEAVE(cd_high, c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    WEAVE(first, ab, cd, 0, 1, 8, 9, 4, 5, 12, 13);
    WEAVE(second, ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    WEAVE(third, ab_high, cd_high, 0, 1, 8, 9, 4, 5, 12, 13);
    WEAVE(fourth, ab_high, cd_high, 2, 3, 10, 11, 6, 7, 14, 15);
    WEAVE(s0, first, second, 0, 1, 2, 3, 8, 9, 10, 11);
    WEAVE(s1, third, fourth, 0, 1, 2, 3, 8, 9, 10, 11);
    WEAVE(s2, first, second, 4, 5, 6, 7, 12, 13, 14, 15);
    WEAVE(s3, third, fourth, 4, 5, 6, 7, 12, 13, 14, 15);
#elif SUMS == 4
    WEAVE(ab, a, b, 0, 4, 1, 5);
    WEAVE(cd, c, d, 0, 4, 1, 5);
    WEAVE(ab_high, a, b, 2, 6, 3, 7);
    WEAVE(cd_high, c, d, 2, 6, 3, 7);
    WEAVE(s0, ab, cd, 0, 1, 4, 5);
    WEAVE(s1, ab, cd, 2, 3, 6, 7);
    WEAVE(s2, ab_high, cd_high, 0, 1, 4, 5);
    WEAVE(s3, ab_high, cd_high, 2, 3, 6, 7);
#endif
#if SUMS > 1
    *(sums *)p = s0, *(sums *)(void *)(p + SUMS) = s1;
    *(sums *)(void *)(p + 2 * SUMS) = s2, *(sums *)(void *)(p + 3 * SUMS) = s3;
#else
    p[0] = a, p[1] = b, p[2] = c, p[3] = d;
#endif
}
"""


@dataclass(frozen=True)
class Stored:
    """How micro-kernels store sums: the C element type, its bytes, and the function to call.

    ``parameters`` are those that the micro-kernel needs for it, ``call`` is the statement.
    """

    type: str
    size: int
    parameters: str
    call: str
    text: str
    name: str


def as_bytes(scaled: Requantization) -> Stored:
    """Return the store of sums as bytes: plus ``fractions`` of a step, if any, times ``factors``.

    Products by large factors are limited to 32 bits.
    """
    name = "store_four" if are_small(scaled.factors) else "store_four_limited"
    argument, parameter, term = "", "", ""
    if scaled.fractions is not None:
        name += "_fractions"
        argument, parameter, term = " fraction,", " float fraction,", " + fraction"
    text = STORE_BYTES.replace("NAME", name).replace("WITHIN", within(scaled.factors))
    return Stored(
        type="unsigned char",
        size=1,
        parameters=f"int32_t bias, float factor,{parameter} const int32_t *last",
        call=f"{name}(results + p, {{}}, factor,{argument} last);",
        text=text.replace("PARAMETER", parameter).replace("FRACTION", term),
        name=name,
    )


AS_SUMS = Stored(
    type="int32_t",
    size=4,
    parameters="int32_t bias",
    call="store_four_sums(results + p, {});",
    text=STORE_SUMS,
    name="store_four_sums",
)
