"""C of dot products of blocks of codes and of the rounding of rows to int8 blocks."""

from __future__ import annotations

DOTS = """#if defined(DOTS)
#elif defined(__GNUC__) && defined(__AVX512VNNI__) && defined(__AVX512BW__)
#define DOTS 16
#elif SUMS == 8
#define DOTS 8
#elif defined(__GNUC__)
#define DOTS 4
#else
#define DOTS 1
#endif
#if DOTS > 1
typedef int32_t dots __attribute__((vector_size(4 * DOTS), aligned(4), may_alias));
typedef uint32_t codes __attribute__((vector_size(4 * DOTS), aligned(4), may_alias));
typedef float dot_reals __attribute__((vector_size(4 * DOTS), aligned(4), may_alias));
#define DOT_REALS(s) __builtin_convertvector(s, dot_reals)
#define EVERY(v) ((v) - (dots){ 0 })
#define EVERY_REAL(v) ((v) - (dot_reals){ 0 })
typedef int32_t four_bytes __attribute__((aligned(1), may_alias));
#define FOUR(p) EVERY(*(const four_bytes *)(const void *)(p))
#else
typedef int32_t dots;
typedef uint32_t codes;
typedef float dot_reals;
#define DOT_REALS(s) ((float)(s))
#define EVERY(v) (v)
#define EVERY_REAL(v) (v)
static IF_CALLED inline int32_t four_of(const int8_t *p)
{
    int32_t bytes;
    memcpy(&bytes, p, 4);
    return bytes;
}
#define FOUR(p) four_of(p)
#endif
#if DOTS > 1
typedef uint16_t dot_halves __attribute__((vector_size(2 * DOTS), aligned(2), may_alias));
typedef uint8_t dot_bytes __attribute__((vector_size(DOTS), aligned(1), may_alias));
#define WIDE_HALVES(p) __builtin_convertvector(*(const dot_halves *)(p), codes)
#define ZEROS(p) __builtin_convertvector(*(const dot_bytes *)(p), dots)
#define AS_REALS(v) ((dot_reals)(v))
#else
#define WIDE_HALVES(p) ((codes)*(p))
#define ZEROS(p) ((dots)*(p))
static IF_CALLED inline float as_real(uint32_t v)
{
    float real;
    memcpy(&real, &v, 4);
    return real;
}
#define AS_REALS(v) as_real(v)
#endif
#define FINITE_HALVES(h) (AS_REALS(((h) & 0x7fff) << 13 | ((h) & 0x8000) << 16) * 0x1p112f)
#if DOTS == 16 && defined(__clang__)
#define ADD_DOTS(s, w, a) s = (dots)__builtin_ia32_vpdpbusd512(s, (dots)(w), a)
#elif DOTS == 16
#define ADD_DOTS(s, w, a) s = (dots)__builtin_ia32_vpdpbusd_v16si(s, (dots)(w), a)
#elif DOTS == 8 && QUADS == 1
#define ADD_DOTS(s, w, a) ADD_QUADS(s, w, a)
#elif DOTS == 4 && defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#define DOT(s, w, a) (dots)vdotq_s32((int32x4_t)(s), (int8x16_t)(w), (int8x16_t)(a))
#define ADD_SMALL_DOTS(s, w, a) s = DOT(s, w, a)
#ifdef __ARM_FEATURE_MATMUL_INT8
#define ADD_DOTS(s, w, a) \\
    s = (dots)vusdotq_s32((int32x4_t)(s), (uint8x16_t)(w), (int8x16_t)(a))
#else
#define ADD_DOTS(s, w, a) s = DOT(DOT(s, (w) & 0x7f7f7f7f, a), (w) >> 1 & 0x40404040, a), \\
    s = DOT(s, (w) >> 1 & 0x40404040, a)
#endif
#else
#define BYTE_OF(a, n) ((dots)((codes)(a) << (24 - 8 * (n))) >> 24)
#define CODE_OF(w, n) ((dots)((w) >> (8 * (n)) & 255))
#if DOTS == 8
#define LOW_HALVES(a) ((pairs)((dots)((codes)(a) << 8)) >> 8)
#define ADD_DOTS(s, w, a) s += MULTIPLIED((pairs)((w) & 0x00ff00ff), LOW_HALVES(a)) \\
    + MULTIPLIED((pairs)((w) >> 8 & 0x00ff00ff), (pairs)(a) >> 8)
#else
#define ADD_DOTS(s, w, a) s += CODE_OF(w, 0) * BYTE_OF(a, 0) + CODE_OF(w, 1) * BYTE_OF(a, 1) \\
    + CODE_OF(w, 2) * BYTE_OF(a, 2) + CODE_OF(w, 3) * BYTE_OF(a, 3)
#endif
#endif
#ifndef ADD_SMALL_DOTS
#define ADD_SMALL_DOTS(s, w, a) ADD_DOTS(s, w, a)
#endif
"""
"""``ADD_DOTS(s, w, a)`` adds the products of four unsigned bytes of ``w`` and four signed bytes of
``a`` to each of ``DOTS`` sums; ``ADD_SMALL_DOTS`` does so for bytes below 128. ARM's ``sdot`` takes
signed bytes: a byte is its low bits, and twice 64 if its highest bit is 1. ``FINITE_HALVES`` has
the numbers of codes of float16."""

ROUNDED = """static IF_CALLED int rounded_blocks(const float *restrict x, ptrdiff_t n,
    ptrdiff_t size, ptrdiff_t blocks, int8_t *restrict to,
    float *restrict factors, int32_t *restrict of_blocks)
{
    float none = 0.0f;
    for (ptrdiff_t b = 0; b < blocks; ++b, x += size, to += size, n -= size) {
        const ptrdiff_t count = n < size ? n : size;
        float most = 0.0f;
        ptrdiff_t k = 0;
#if SUMS > 1
        reals high = { 0 }, low = { 0 }, bad = { 0 };
        for (; k + SUMS <= count; k += SUMS) {
            const reals v = *(const reals *)(x + k);
            high = GREATER(v, high), low = LESSER(v, low), bad += v * 0.0f;
        }
        for (ptrdiff_t i = 0; i < SUMS; ++i) {
            most = most > high[i] ? most : high[i];
            most = most > -low[i] ? most : -low[i];
            none += bad[i];
        }
#endif
        for (; k < count; ++k) {
            const float v = x[k] < 0.0f ? -x[k] : x[k];
            most = v > most ? v : most;
            none += v * 0.0f;
        }
        if (none != 0.0f)
            return 0;
        const float factor = most > 1e-35f ? most / 127.0f : 0.0f;
        const float inverse = most > 1e-35f ? 127.0f / most : 0.0f;
        int32_t sum = 0;
        k = 0;
#if SUMS > 1
        sums all = { 0 };
        for (; k + SUMS <= count; k += SUMS) {
            const sums q = NEAREST(*(const reals *)(x + k) * inverse);
            all += q;
            store_low_bytes((signed char *)to + k, q);
        }
        for (ptrdiff_t i = 0; i < SUMS; ++i)
            sum += all[i];
#endif
        for (; k < size; ++k) {
            const int32_t q = k < count ? (int32_t)lrintf(x[k] * inverse) : 0;
            to[k] = (int8_t)q;
            sum += q;
        }
        factors[b] = factor;
        of_blocks[b] = sum;
    }
    return 1;
}
"""

OF_FLOATS = """static NO_INLINE void NAME(const float *restrict x, ptrdiff_t n, ptrdiff_t columns,
    ptrdiff_t blocks, ptrdiff_t size, PARAMETERS
    const float *restrict bias, float *restrict y)
{
    for (ptrdiff_t c = 0; c < columns; ++c) {
        float sum = bias[c];
        for (ptrdiff_t k = 0; k < n; ++k)
            sum += x[k] * ((float)((int)CODE - ZERO) * SCALE);
        y[c] = sum;
    }
}
"""

OF_HALF = """static IF_CALLED float float_of_half(uint16_t half)
{
    const uint32_t bits = (half & 0x7fffu) << 13;
    float real;
    memcpy(&real, &bits, 4);
    return (half & 0x8000u ? -real : real) * 0x1p112f;
}
"""
