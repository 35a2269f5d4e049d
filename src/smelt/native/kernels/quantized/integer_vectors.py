"""Integer vectors in C: products of 16-bit integers, added in pairs to 32-bit sums.

x86 multiplies pairs of 16-bit integers and adds both products without loss (``pmaddwd``), so
reduction axes are computed in pairs. Products of bytes (``pmaddubsw``) saturate. Other CPUs run
plain C, one sum at a time.
"""

from __future__ import annotations

import numpy as np

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import PRELUDE

MOST_SUMS = 8
"""The sums of the widest vector, and the pairs that kernels may read past the last one."""

INTEGERS = """#if defined(SUMS)
#elif defined(__GNUC__) && defined(__AVX2__)
#define SUMS 8
#elif defined(__GNUC__) && defined(__SSE2__)
#define SUMS 4
#else
#define SUMS 1
#endif
#if defined(__GNUC__)
#define IF_CALLED __attribute__((unused))
#else
#define IF_CALLED
#endif
#if SUMS > 1
typedef int32_t sums __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));
typedef float reals __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));
typedef int16_t pairs __attribute__((vector_size(4 * SUMS), aligned(2), may_alias));
typedef int32_t word __attribute__((aligned(1), may_alias));
typedef int64_t two_words __attribute__((aligned(1), may_alias));
typedef int64_t words __attribute__((vector_size(4 * SUMS), may_alias));
typedef int32_t one_pair __attribute__((aligned(2), may_alias));
static IF_CALLED inline pairs same_pair(const void *p)
{
    const sums zero = { 0 };
    return (pairs)(zero + *(const one_pair *)p);
}
static IF_CALLED inline reals same_real(float v)
{
    const reals zero = { 0 };
    return zero + v;
}
#define SAME_PAIR(p) same_pair(p)
#if SUMS == 8
typedef char chars __attribute__((vector_size(16), aligned(1), may_alias));
#endif
#if SUMS == 8 && defined(__clang__)
typedef int8_t signed_chars __attribute__((vector_size(16)));
typedef uint8_t unsigned_chars __attribute__((vector_size(16)));
#define FIRST_EIGHT(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define SECOND(v) \\
    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)
#define WIDE_int8_t(v) __builtin_convertvector(FIRST_EIGHT((signed_chars)(v)), sums)
#define WIDE_uint8_t(v) __builtin_convertvector(FIRST_EIGHT((unsigned_chars)(v)), sums)
#elif SUMS == 8
typedef long long halves __attribute__((vector_size(16), may_alias));
#define SECOND(v) ((chars)__builtin_ia32_psrldqi128((halves)(v), 64))
#define WIDE_int8_t(v) ((sums)__builtin_ia32_pmovsxbd256(v))
#define WIDE_uint8_t(v) ((sums)__builtin_ia32_pmovzxbd256(v))
#endif
#define REAL(s) __builtin_convertvector(s, reals)
#if SUMS == 8
#define MULTIPLIED(a, b) ((sums)__builtin_ia32_pmaddwd256(a, b))
#define PACKED_PAIRS(a, b) ((pairs)__builtin_ia32_packssdw256(a, b))
#define PACKED_BYTES(a, b) ((sums)__builtin_ia32_packuswb256(a, b))
static IF_CALLED inline sums in_order(sums v)
{
    const sums order = { 0, 4, 1, 5, 2, 6, 3, 7 };
    return (sums)__builtin_ia32_permvarsi256(v, order);
}
#define IN_ORDER(v) in_order(v)
static IF_CALLED inline sums packed_bytes(sums a, sums b)
{
    const pairs small = PACKED_PAIRS(a, b);
    return IN_ORDER(PACKED_BYTES(small, small));
}
typedef two_words vector_bytes;
#define BYTES_OF(s, number) (((words)(s))[number])
#define LESSER(v, w) ((reals)__builtin_ia32_minps256(v, w))
#define GREATER(v, w) ((reals)__builtin_ia32_maxps256(v, w))
#define NEAREST(v) ((sums)__builtin_ia32_cvtps2dq256(v))
static IF_CALLED inline void store_low_bytes(signed char *p, sums s)
{
    const pairs small = __builtin_ia32_packssdw256(s & 255, s & 255);
    const sums packed = (sums)__builtin_ia32_packuswb256(small, small);
    ((word *)p)[0] = packed[0];
    ((word *)p)[1] = packed[4];
}
static IF_CALLED inline void store_in_turn(unsigned char *p, sums even, sums odd)
{
    const sums both = (even | (odd << 8)) << 16 >> 16;
    const words packed = (words)__builtin_ia32_packssdw256(both, both);
    ((two_words *)p)[0] = packed[0];
    ((two_words *)p)[1] = packed[2];
}
#else
#define MULTIPLIED(a, b) ((sums)__builtin_ia32_pmaddwd128(a, b))
#define PACKED_PAIRS(a, b) ((pairs)__builtin_ia32_packssdw128(a, b))
#define PACKED_BYTES(a, b) ((sums)__builtin_ia32_packuswb128(a, b))
static IF_CALLED inline sums packed_bytes(sums a, sums b)
{
    const pairs small = PACKED_PAIRS(a, b);
    return PACKED_BYTES(small, small);
}
#define IN_ORDER(v) (v)
typedef word vector_bytes;
#define BYTES_OF(s, number) ((s)[number])
#define LESSER(v, w) ((reals)__builtin_ia32_minps(v, w))
#define GREATER(v, w) ((reals)__builtin_ia32_maxps(v, w))
#define NEAREST(v) ((sums)__builtin_ia32_cvtps2dq(v))
static IF_CALLED inline void store_low_bytes(signed char *p, sums s)
{
    const pairs small = __builtin_ia32_packssdw128(s & 255, s & 255);
    const sums packed = (sums)__builtin_ia32_packuswb128(small, small);
    *(word *)p = packed[0];
}
static IF_CALLED inline void store_in_turn(unsigned char *p, sums even, sums odd)
{
    const sums both = (even | (odd << 8)) << 16 >> 16;
    const words packed = (words)__builtin_ia32_packssdw128(both, both);
    *(two_words *)p = packed[0];
}
#endif
#define NOT_ABOVE(v, high) LESSER(v, same_real(high))
#define LIMITED(v) NOT_ABOVE(v, 1073741824.0f)
#define CLAMPED(v, low, high) NOT_ABOVE(GREATER(v, same_real(low)), high)
static IF_CALLED inline void store_some(unsigned char *p, const unsigned char *from, ptrdiff_t n)
{
#if SUMS == 8
    if (n & 8)
        memcpy(p, from, 8), p += 8, from += 8;
#endif
    if (n & 4)
        memcpy(p, from, 4), p += 4, from += 4;
    if (n & 2)
        memcpy(p, from, 2), p += 2, from += 2;
    if (n & 1)
        *p = *from;
}
static IF_CALLED inline void store_two(reals a, reals b, const int32_t *last,
    unsigned char *p, ptrdiff_t m, unsigned char *q, ptrdiff_t n)
{
    const sums first = NEAREST(LIMITED(a)) + last[0];
    const sums second = NEAREST(LIMITED(b)) + last[0];
    const sums packed = packed_bytes(first, second) ^ last[1];
    if (m == SUMS && n == SUMS) {
        *(vector_bytes *)p = BYTES_OF(packed, 0);
        *(vector_bytes *)q = BYTES_OF(packed, 1);
    } else {
        const vector_bytes bytes[] = { BYTES_OF(packed, 0), BYTES_OF(packed, 1) };
        store_some(p, (const unsigned char *)bytes, m);
        if (n > 0)
            store_some(q, (const unsigned char *)(bytes + 1), n);
    }
}
static IF_CALLED inline void store_rows(reals a, reals b, reals c, reals d, const int32_t *last,
    unsigned char *p, ptrdiff_t pitch)
{
    const int32_t zero = last[0];
    const pairs ab = PACKED_PAIRS(NEAREST(LIMITED(a)) + zero, NEAREST(LIMITED(b)) + zero);
    const pairs cd = PACKED_PAIRS(NEAREST(LIMITED(c)) + zero, NEAREST(LIMITED(d)) + zero);
    const sums packed = IN_ORDER(PACKED_BYTES(ab, cd)) ^ last[1];
    *(vector_bytes *)p = BYTES_OF(packed, 0);
    *(vector_bytes *)(p + SUMS) = BYTES_OF(packed, 1);
    *(vector_bytes *)(p + pitch) = BYTES_OF(packed, 2);
    *(vector_bytes *)(p + pitch + SUMS) = BYTES_OF(packed, 3);
}
#else
typedef int32_t sums;
typedef float reals;
typedef struct { int16_t first, second; } pairs;
#define SAME_PAIR(p) (*(const pairs *)(const void *)(p))
#define REAL(s) ((float)(s))
static IF_CALLED inline reals same_real(float v)
{
    return v;
}
#define MULTIPLIED(a, b) ((int32_t)(a).first * (b).first + (int32_t)(a).second * (b).second)
#define CLAMPED(v, low, high) ((v) < (low) ? (low) : (v) > (high) ? (high) : (v))
#define NEAREST(v) ((int32_t)lrintf(v))
static IF_CALLED inline void store_low_bytes(signed char *p, sums s)
{
    *p = (signed char)s;
}
static IF_CALLED inline unsigned char byte_of(float v, const int32_t *last)
{
    const float held = v < -1024.0f ? -1024.0f : v > 1024.0f ? 1024.0f : v;
    const int32_t near = (int32_t)lrintf(held) + last[0];
    return (unsigned char)((near < 0 ? 0 : near > 255 ? 255 : near) ^ (last[1] & 255));
}
static IF_CALLED inline void store_two(float a, float b, const int32_t *last,
    unsigned char *p, ptrdiff_t m, unsigned char *q, ptrdiff_t n)
{
    (void)m;
    *p = byte_of(a, last);
    if (n > 0)
        *q = byte_of(b, last);
}
static IF_CALLED inline void store_rows(reals a, reals b, reals c, reals d, const int32_t *last,
    unsigned char *p, ptrdiff_t pitch)
{
    p[0] = byte_of(a, last), p[1] = byte_of(b, last);
    p[pitch] = byte_of(c, last), p[pitch + 1] = byte_of(d, last);
}
static IF_CALLED inline void store_in_turn(unsigned char *p, sums even, sums odd)
{
    p[0] = (unsigned char)even;
    p[1] = (unsigned char)odd;
}
#endif
"""
"""``sums`` has ``SUMS`` 32-bit integers, ``pairs`` as many pairs of 16-bit ones, unaligned.

``store_two`` rounds, adds the zero point ``last[0]`` of unsigned bytes, clamps to bytes, and flips
the sign bits in ``last[1]``, all or none: signed bytes are unsigned ones minus 128."""


SMALL_FACTOR = 0.5
"""The largest factor for which a 32-bit sum times it, plus a zero point, always fits 32 bits."""


def are_small(factors: np.ndarray) -> bool:
    """True if products of sums by ``factors`` fit 32 bits without a limit."""
    return bool(np.all(np.abs(factors) <= SMALL_FACTOR))


def within(factors: np.ndarray) -> str:
    """Return the macro that limits products of sums by ``factors`` to 32 bits; "" if not needed."""
    return "" if are_small(factors) else "LIMITED"


def declare(cx: KernelContext) -> None:
    """Let the kernel use the integer vector types."""
    cx.call("LANES", PRELUDE)
    cx.call("SUMS", INTEGERS)
