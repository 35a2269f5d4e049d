"""Vectors of floats in C: as many lanes as the compiler's target has, one where it has none.

They are the vectors of the GNU dialect, which gcc and clang turn into instructions of any CPU.
Wider vectors than the CPU has are ruinous there, so the width follows what the compiler says.
"""

from __future__ import annotations

MOST_LANES = 16
"""Lanes of the widest vectors: how far kernels may read past what they use."""

_SIXTEEN = """#if defined(__clang__) && \\
    (defined(__AVX512F__) || (defined(LANES) && LANES == 16))
{}
#endif"""
WHOLE_VECTORS = _SIXTEEN.format(
    "#pragma clang attribute push(__attribute__((min_vector_width(512))), apply_to = function)\n"
    '#pragma clang attribute push(__attribute__((target("tune=x86-64"))), apply_to = function)'
)
WHOLE_VECTORS_END = _SIXTEEN.format("\n".join(["#pragma clang attribute pop"] * 2))
"""Around all functions: else clang 14 makes two of each vector of 16 floats, and then has too few
registers for them."""

PRELUDE = """#if defined(__GNUC__)
#define APART __attribute__((noinline))
#define FETCH(p) __builtin_prefetch(p, 0, 2)
#else
#define APART
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
#define HOLD(v) ((void)0)
#elif defined(__AVX512F__)
#define HOLD(v) __asm__("" : "+v"(v))
#else
#define HOLD(v) __asm__("" : "+x"(v))
#endif
#if defined(__clang__)
#define LATER(p, v) __asm__("" : "+r"(p))
#elif defined(__AVX512F__)
#define LATER(p, v) __asm__("" : "+r"(p) : "v"(v))
#else
#define LATER(p, v) ((void)0)
#endif
"""
"""``vec`` holds ``LANES`` floats, ``four`` four, at any address; ``MIXED`` takes elements of two of
the latter. NaN is not below 0. Functions that fill all registers stand ``APART``: inside another,
what that one holds would drive their sums out. ``HOLD`` keeps a vector in a register, where gcc
would load it anew for each product that reads it, which takes longer than the products. ``LATER``
keeps what is read at a pointer from being read before a sum is there, or from being kept from an
earlier read: there are no registers for it. ``FETCH`` brings a line of memory nearer."""

TURN = """#if LANES > 1
__attribute__((unused))
static inline void turn_four(const float *from, ptrdiff_t step, float *to, ptrdiff_t pitch)
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
"""Four rows of four elements, ``step`` apart, become columns of rows that are ``pitch`` apart."""

SECONDS = """#if LANES == 16 && !defined(__clang__)
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
#if defined(__GNUC__)
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
"""Copies every second element; none is read beyond the last of them."""
