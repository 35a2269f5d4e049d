"""Vectors of floats in C with as many lanes as the compiler's target has, one if it has none.

They use the vector extension of GNU C, which gcc and clang support on any CPU. Vectors wider than
the CPU's are very slow, so the width follows the compiler's target macros.
"""

from __future__ import annotations

MOST_LANES = 16
"""The lanes of the widest vectors, and so the most elements that kernels read past their data."""

_SIXTEEN = """#if defined(__clang__) && \\
    (defined(__AVX512F__) || (defined(LANES) && LANES == 16))
{}
#endif"""
WHOLE_VECTORS = _SIXTEEN.format(
    "#pragma clang attribute push(__attribute__((min_vector_width(512))), apply_to = function)\n"
    '#pragma clang attribute push(__attribute__((target("tune=x86-64"))), apply_to = function)'
)
WHOLE_VECTORS_END = _SIXTEEN.format("\n".join(["#pragma clang attribute pop"] * 2))
"""Pragmas around all functions. Without them, clang 14 splits vectors of 16 floats and runs out of
registers."""

PRELUDE = """#if defined(__GNUC__)
#define NO_INLINE __attribute__((noinline))
#define FETCH(p) __builtin_prefetch(p, 0, 2)
#else
#define NO_INLINE
#define FETCH(p) ((void)0)
#endif
#if defined(LANES)
#elif !defined(__GNUC__)
#define LANES 1
#elif defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#elif defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__wasm_simd128__)
#define LANES 4
#else
#define LANES 1
#endif
#if LANES > 1
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t mask __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
#define NOT_BELOW_0(v) ((vec)((mask)(v) & ~((v) < 0)))
#if defined(__clang__)
#define MIXED(v, w, i, j, k, l) __builtin_shufflevector(v, w, i, j, k, l)
#else
typedef int32_t four_places __attribute__((vector_size(16)));
#define MIXED(v, w, i, j, k, l) __builtin_shuffle(v, w, __extension__(four_places){ i, j, k, l })
#endif
#else
typedef float vec;
#define NOT_BELOW_0(v) ((v) < 0 ? 0 : (v))
#endif
#if !defined(__GNUC__) || defined(__clang__) || LANES == 1 || !defined(__SSE2__)
#define KEEP_IN_REGISTER(v) ((void)0)
#elif defined(__AVX512F__)
#define KEEP_IN_REGISTER(v) __asm__("" : "+v"(v))
#else
#define KEEP_IN_REGISTER(v) __asm__("" : "+x"(v))
#endif
#if defined(__clang__)
#define ORDER_AFTER(p, v) __asm__("" : "+r"(p))
#elif defined(__AVX512F__)
#define ORDER_AFTER(p, v) __asm__("" : "+r"(p) : "v"(v))
#else
#define ORDER_AFTER(p, v) ((void)0)
#endif
"""
"""Macros and types of vectors:

- ``vec``: ``LANES`` floats at any address. ``four``: four floats.
- ``MIXED``: shuffle two ``four``. ``NOT_BELOW_0``: Relu that keeps NaN.
- ``NO_INLINE``: noinline, for functions that use all registers; inlined, their accumulators spill.
- ``KEEP_IN_REGISTER``: keep a vector in a register; gcc would reload it for each product.
- ``ORDER_AFTER``: no read at a pointer before a sum is computed, or reuse of an earlier read.
- ``FETCH``: prefetch a cache line."""

TRANSPOSE_4X4 = """#if LANES > 1
__attribute__((unused))
static inline void transpose_4x4(const float *from, ptrdiff_t step, float *to, ptrdiff_t pitch)
{
    const four r0 = *(const four *)from, r1 = *(const four *)(from + step);
    const four r2 = *(const four *)(from + 2 * step), r3 = *(const four *)(from + 3 * step);
    const four low0 = MIXED(r0, r1, 0, 4, 1, 5), high0 = MIXED(r0, r1, 2, 6, 3, 7);
    const four low1 = MIXED(r2, r3, 0, 4, 1, 5), high1 = MIXED(r2, r3, 2, 6, 3, 7);
    *(four *)to = MIXED(low0, low1, 0, 1, 4, 5);
    *(four *)(to + pitch) = MIXED(low0, low1, 2, 3, 6, 7);
    *(four *)(to + 2 * pitch) = MIXED(high0, high1, 0, 1, 4, 5);
    *(four *)(to + 3 * pitch) = MIXED(high0, high1, 2, 3, 6, 7);
}
#endif
"""
"""C that transposes a 4x4 block: rows ``step`` apart become columns of rows ``pitch`` apart."""

EVENS_AND_ODDS = """#if LANES == 16 && !defined(__clang__)
#define EVENS(v, w) __builtin_shuffle(v, w, __extension__(mask){ \\
    0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 })
#elif LANES == 16
#define EVENS(v, w) __builtin_shufflevector(v, w, \\
    0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#elif LANES == 8 && !defined(__clang__)
#define EVENS(v, w) __builtin_shuffle(v, w, __extension__(mask){ 0, 2, 4, 6, 8, 10, 12, 14 })
#elif LANES == 8
#define EVENS(v, w) __builtin_shufflevector(v, w, 0, 2, 4, 6, 8, 10, 12, 14)
#endif
#if LANES == 16 && !defined(__clang__)
#define ODDS(v, w) __builtin_shuffle(v, w, __extension__(mask){ \\
    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31 })
#elif LANES == 16
#define ODDS(v, w) __builtin_shufflevector(v, w, \\
    1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#elif LANES == 8 && !defined(__clang__)
#define ODDS(v, w) __builtin_shuffle(v, w, __extension__(mask){ 1, 3, 5, 7, 9, 11, 13, 15 })
#elif LANES == 8
#define ODDS(v, w) __builtin_shufflevector(v, w, 1, 3, 5, 7, 9, 11, 13, 15)
#endif
"""
"""Macros that pick every second element of two vectors."""

SHORT_LOOP = """#if defined(__clang__)
#define SHORT_LOOP _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define SHORT_LOOP
#endif
"""
"""A pragma before short loops that clang should not vectorize."""

SECONDS = """#if defined(__GNUC__)
__attribute__((unused))
#endif
static inline void copy_seconds(const float *restrict from, float *restrict to,
    ptrdiff_t count)
{
    ptrdiff_t j = 0;
#if LANES >= 8
    for (; j + LANES < count; j += LANES) {
        const vec low = *(const vec *)(from + 2 * j);
        const vec high = *(const vec *)(from + 2 * j + LANES);
        *(vec *)(to + j) = EVENS(low, high);
    }
#endif
#if LANES > 1
    for (; j + 4 < count; j += 4) {
        const four low = *(const four *)(from + 2 * j), high = *(const four *)(from + 2 * j + 4);
        *(four *)(to + j) = MIXED(low, high, 0, 2, 4, 6);
    }
#endif
    for (; j < count; ++j)
        to[j] = from[2 * j];
}
"""
"""C that copies every second element and reads none past the last one."""
