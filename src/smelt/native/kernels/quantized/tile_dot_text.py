"""C of products of bfloat16 matrices in the tile registers of x86 (AMX).

A tile register has 16 rows of 64 bytes. Linux lets a process use them once it has asked.
"""

from __future__ import annotations

TILES = """#if DOTS == 16 && defined(__AMX_BF16__) && defined(__x86_64__) && defined(__linux__) \\
    && !defined(SMELT_NO_TILES)
#define TILES 1
long syscall(long number, ...);
static IF_CALLED int has_tiles(void)
{
    static int known = 0;
    int answer = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (answer == 0) {
        answer = syscall(158L, 0x1023L, 18L) == 0 ? 2 : 1;
        __atomic_store_n(&known, answer, __ATOMIC_RELAXED);
    }
    return answer == 2;
}
static IF_CALLED void begin_tiles(void)
{
    static const struct {
        uint8_t palette, start, unused[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } sizes = { 1, 0, { 0 }, { 64, 64, 64, 64, 64, 64, 64, 64 },
        { 16, 16, 16, 16, 16, 16, 16, 16 } };
    __asm__ volatile("ldtilecfg %0" : : "m"(sizes));
}
static IF_CALLED int short_floats(const float *restrict x, ptrdiff_t n, ptrdiff_t row,
    uint16_t *restrict to)
{
    float none = 0.0f;
    for (ptrdiff_t k = 0; k < row; k += 16) {
        dot_reals v = { 0 };
        if (k + 16 <= n)
            v = *(const dot_reals *)(x + k);
        else
            for (ptrdiff_t i = 0; i < n - k; ++i)
                v[i] = x[k + i];
        const codes bits = (codes)v + 0x7fff + ((codes)v >> 16 & 1);
        const dot_reals bad = (AS_REALS(bits & 0xffff0000u) - v) * 0.0f;
        *(dot_halves *)(to + k) = __builtin_convertvector(bits >> 16, dot_halves);
        for (ptrdiff_t i = 0; i < 16; ++i)
            none += bad[i];
    }
    return none == 0.0f;
}
static NO_INLINE void tile_dot(ptrdiff_t row, const uint16_t *restrict a,
    const uint16_t *restrict b, const float *restrict bias, ptrdiff_t rows, ptrdiff_t columns,
    float *restrict y, ptrdiff_t pitch)
{
    float results[32 * 32];
    const uint16_t *const a1 = a + 16 * row, *const b1 = b + 16 * row;
    __asm__ volatile("tilezero %tmm0\\n\\ttilezero %tmm1\\n\\ttilezero %tmm2\\n\\ttilezero %tmm3");
    for (ptrdiff_t k = 0; k < row; k += 32)
        __asm__ volatile("tileloadd (%0,%4,1), %%tmm4\\n\\ttileloadd (%2,%5,1), %%tmm6\\n\\t"
            "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\\n\\ttileloadd (%3,%5,1), %%tmm7\\n\\t"
            "tdpbf16ps %%tmm7, %%tmm4, %%tmm1\\n\\ttileloadd (%1,%4,1), %%tmm5\\n\\t"
            "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\\n\\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3"
            : : "r"(a + k), "r"(a1 + k), "r"(b + 16 * k), "r"(b1 + 16 * k), "r"(2 * row),
            "r"((ptrdiff_t)64) : "memory");
    __asm__ volatile("tilestored %%tmm0, (%0,%4,1)\\n\\ttilestored %%tmm1, (%1,%4,1)\\n\\t"
        "tilestored %%tmm2, (%2,%4,1)\\n\\ttilestored %%tmm3, (%3,%4,1)"
        : : "r"(results), "r"(results + 16), "r"(results + 512), "r"(results + 528),
        "r"((ptrdiff_t)128) : "memory");
    for (ptrdiff_t m = 0; m < rows; ++m)
        if (columns == 32)
            for (ptrdiff_t c = 0; c < 32; c += 16)
                *(dot_reals *)(y + m * pitch + c) =
                    *(const dot_reals *)(results + 32 * m + c) + *(const dot_reals *)(bias + c);
        else
            for (ptrdiff_t c = 0; c < columns; ++c)
                y[m * pitch + c] = results[32 * m + c] + bias[c];
}
#else
#define TILES 0
#endif
"""
"""``has_tiles``: whether the system lets this process use tiles. ``short_floats`` rounds a row to
bfloat16, padded with zeros, and returns whether the row and the rounded row are finite.
``tile_dot`` multiplies up to 32 rows by 32 columns of bfloat16, of which two rows of 16 columns
stand side by side."""

TILE_WEIGHTS = """#if TILES
static NO_INLINE void NAME(ptrdiff_t blocks, ptrdiff_t size, PARAMETERS
    uint16_t *restrict to)
{
    codes *pairs_of = (codes *)(void *)to;
    for (ptrdiff_t b = 0; b < blocks; ++b) {
        const dot_reals scale = SCALE;
        const dot_reals zero = DOT_REALS(ZERO) * scale;
        for (ptrdiff_t k = 0; k < size; k += WORD, w += 64) {
            const codes q = *(const codes *)(const void *)w;
            for (int i = 0; i < WORD / 2; ++i) {
                const int at = FIRST;
                const dot_reals even = DOT_REALS((dots)(q >> at & MASK)) * scale - zero;
                const dot_reals odd = DOT_REALS((dots)(q >> (at + 8) & MASK)) * scale - zero;
                *pairs_of++ = ((codes)even + 0x8000) >> 16 | (((codes)odd + 0x8000) & 0xffff0000u);
            }
        }
    }
}
#endif
"""
"""C that unpacks a panel of codes to bfloat16: two rows of 16 columns side by side."""
