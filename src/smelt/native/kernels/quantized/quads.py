"""Products of unsigned bytes by signed ones in C: four neighbours a sum of 32 bits.

CPUs with VNNI multiply four pairs of bytes and add the products without loss (``vpdpbusd``).
Others on x86 take the bytes at even and at odd places apart, as 16 bits, and add products of those
in pairs (``pmaddwd``); products of bytes that saturate (``pmaddubsw``) serve convolutions whose
weights are held to what they take.

What a build is not told of its CPU it asks at run time, unless ``SMELT_NO_DISPATCH`` is defined.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.lanes import declare as declare_lanes

QUADS = """#if SUMS != 8 || !defined(__GNUC__)
#define QUADS 0
#elif defined(__AVX512VNNI__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define QUADS 2
#define HAS_QUADS 1
#define WITH_QUADS
#elif defined(__AVXVNNI__)
#define QUADS 1
#define HAS_QUADS 1
#define WITH_QUADS
#elif (__GNUC__ >= 9 || (defined(__clang__) && __clang_major__ >= 9)) && !defined(SMELT_NO_DISPATCH)
#define QUADS 2
#define HAS_QUADS (__builtin_cpu_supports("avx512vnni") && \\
    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && \\
    __builtin_cpu_supports("avx512dq"))
#define WITH_QUADS __attribute__((target("avx2,fma,avx512f,avx512vl,avx512bw,avx512dq,avx512vnni")))
#else
#define QUADS 0
#endif
#if !QUADS
#define HAS_QUADS 0
#elif defined(__clang__)
#define ADD_QUADS(s, a, b) s = (sums)__builtin_ia32_vpdpbusd256(s, (sums)(a), (sums)(b))
#else
#define ADD_QUADS(s, a, b) s = (sums)__builtin_ia32_vpdpbusd_v8si(s, (sums)(a), (sums)(b))
#endif
#if SUMS > 1
typedef uint16_t unsigned_pairs __attribute__((vector_size(4 * SUMS), aligned(1), may_alias));
typedef uint32_t unsigned_sums __attribute__((vector_size(4 * SUMS), aligned(4), may_alias));
typedef int32_t sums_anywhere __attribute__((vector_size(4 * SUMS), aligned(1), may_alias));
static IF_CALLED inline sums same_word(const void *p)
{
    const sums zero = { 0 };
    return zero + *(const word *)p;
}
#define SECONDS(p) ((pairs)(*(const unsigned_pairs *)(const void *)(p) >> 8))
#define EVEN_BYTES(p) (*(const pairs *)(const void *)(p) << 8 >> 8)
#define ODD_BYTES(p) (*(const pairs *)(const void *)(p) >> 8)
#define ADDED(s, t) ((sums)((unsigned_sums)(s) + (unsigned_sums)(t)))
#else
static IF_CALLED inline pairs every_second(const unsigned char *p)
{
    const pairs wide = { p[1], p[3] };
    return wide;
}
static IF_CALLED inline pairs two_bytes(const int8_t *p)
{
    const pairs wide = { p[0], p[2] };
    return wide;
}
#define SECONDS(p) every_second(p)
#define EVEN_BYTES(p) two_bytes(p)
#define ODD_BYTES(p) two_bytes((p) + 1)
#define ADDED(s, t) ((int32_t)((uint32_t)(s) + (uint32_t)(t)))
#endif
#define ADD_HALVES(s, a, b) s = ADDED(s, MULTIPLIED(a, b))
"""
"""``SECONDS`` are every second byte after ``p``, as 16 bits, of as many quads as a vector has sums;
``EVEN_BYTES`` and ``ODD_BYTES`` those of signed ones, from the first or the second byte on.
``QUADS`` are how many vectors of sums one of the CPU's has ``WITH_QUADS``, 0 where none has them.
They have all features of the widest version, without which clang puts none of its functions inside.
``ADD_QUADS`` is for functions that are declared ``WITH_QUADS`` and called if ``HAS_QUADS``."""

LEAD = 32
"""Bytes before a plane, of which kernels read the last."""

MOST_ROWS = 8
"""Rows of a tile at most."""

WIDEN = """static IF_CALLED void widen_quads(const int8_t *restrict from, ptrdiff_t quads,
    ptrdiff_t rows, int16_t *restrict to)
{
    for (; quads > 0; --quads, from += 4 * rows, to += 4 * rows) {
#if SUMS > 1
        for (ptrdiff_t m = 0; m < rows; m += SUMS)
            *(pairs *)(to + 2 * m) = EVEN_BYTES(from + 4 * m);
        for (ptrdiff_t m = 0; m < rows; m += SUMS)
            *(pairs *)(to + 2 * (rows + m)) = ODD_BYTES(from + 4 * m);
#else
        for (ptrdiff_t m = 0; m < 2 * rows; ++m) {
            to[m] = from[2 * m];
            to[2 * rows + m] = from[2 * m + 1];
        }
#endif
    }
}
"""
"""Vectors read and write past the last row."""


def declare(cx: KernelContext) -> None:
    """Let the kernel use those."""
    declare_lanes(cx)
    cx.call("QUADS", QUADS)


def widen(cx: KernelContext) -> str:
    """A function ``(from, quads, rows, to)``: of each quad of rows of bytes, as 16 bits, first the
    bytes at even places of all rows, then those at odd ones."""
    declare(cx)
    return cx.call("widen_quads", WIDEN)
