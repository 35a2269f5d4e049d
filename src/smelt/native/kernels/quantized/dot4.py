"""int8 dot products in C: four unsigned bytes times four signed ones, added to a 32-bit sum.

CPUs with VNNI multiply four pairs of bytes and add the products without loss (``vpdpbusd``). Other
x86 CPUs widen the bytes at even and at odd positions to 16 bits each and add products in pairs
(``pmaddwd``). Saturating products of bytes (``pmaddubsw``) serve convolutions with clamped weights
(see ``pairwise_safe.py``).

A CPU feature that the compiler flags do not promise is tested at run time, unless
``SMELT_NO_DISPATCH`` is defined.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.integer_vectors import declare as declare_lanes

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
"""The macros and functions of int8 dot products.

| Name | Meaning | Defined |
|---|---|---|
| ``QUADS`` | vectors of 8 sums per CPU register in dot products: 0 (none), 1 or 2 | always |
| ``HAS_QUADS`` | whether the CPU that runs has them, tested at run time if unknown | always |
| ``WITH_QUADS`` | target attributes of functions with ``ADD_QUADS`` | if ``QUADS`` |
| ``ADD_QUADS`` | adds dot products of four bytes to a vector of sums | if ``QUADS`` |
| ``same_word`` | broadcasts four bytes to all lanes | if ``SUMS > 1`` |
| ``SECONDS`` | every second unsigned byte from ``p + 1`` on, as 16 bits | always |
| ``EVEN_BYTES``, ``ODD_BYTES`` | signed bytes at even or odd positions, as 16 bits | always |
| ``ADDED``, ``ADD_HALVES`` | a wrapping sum; adds products of 16 bits in pairs | always |

Functions ``WITH_QUADS`` are called only if ``HAS_QUADS``. The attribute lists all features of the
widest version, as clang inlines only functions with the same features.
"""

LEAD = 32
"""The bytes before a plane; kernels read the last of them."""

MOST_ROWS = 8
"""The most rows of a micro-kernel."""

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
"""C that widens weights to 16 bits; its vectors read and write past the last row."""


def declare(cx: KernelContext) -> None:
    """Let the kernel use int8 dot products."""
    declare_lanes(cx)
    cx.call("QUADS", QUADS)


def widen(cx: KernelContext) -> str:
    """Return the name of a function ``(from, quads, rows, to)`` that widens bytes to 16 bits.

    For each group of four of all rows, the bytes at even positions come first, then those at odd
    positions.
    """
    declare(cx)
    return cx.call("widen_quads", WIDEN)
