"""Four vectors, each with the sums of every fourth pixel, stored as neighbours: bytes or sums."""

from __future__ import annotations

from dataclasses import dataclass

STORE_BYTES = """static IF_CALLED inline sums near_bytes(sums s, int32_t bias, float factor,
    const int32_t *last)
{
    const reals scaled = REAL(s + bias) * factor;
    const sums near = NEAREST(HELD(scaled, (float)-last[0], (float)(255 - last[0]))) + last[0];
    return near ^ (last[1] & 255);
}
static IF_CALLED inline void store_four(unsigned char *p, sums a, sums b, sums c, sums d)
{
#if SUMS > 1
    *(sums *)p = a | b << 8 | c << 16 | d << 24;
#else
    p[0] = (unsigned char)a, p[1] = (unsigned char)b;
    p[2] = (unsigned char)c, p[3] = (unsigned char)d;
#endif
}
"""


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
    *(sums *)p = s0, *(sums *)(p + SUMS) = s1;
    *(sums *)(p + 2 * SUMS) = s2, *(sums *)(p + 3 * SUMS) = s3;
#else
    p[0] = a, p[1] = b, p[2] = c, p[3] = d;
#endif
}
"""


@dataclass(frozen=True)
class Stored:
    """How sums are stored: the element type in C and its bytes, the parameters of a tile that say
    so, what a tile calls with them, and the function that it calls."""

    type: str
    size: int
    parameters: str
    call: str
    text: str
    name: str


AS_BYTES = Stored(
    type="unsigned char",
    size=1,
    parameters="int32_t bias, float factor, const int32_t *last",
    call="store_four(results + p, {});",
    text=STORE_BYTES,
    name="near_bytes",
)
AS_SUMS = Stored(
    type="int32_t",
    size=4,
    parameters="int32_t bias",
    call="store_four_sums(results + p, {});",
    text=STORE_SUMS,
    name="store_four_sums",
)
