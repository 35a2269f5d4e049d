/* Pairs of 16-bit integers, whose products are added to a 32-bit sum: one instruction with the DSP
   extension of Arm, two products elsewhere. Sums wrap. */
#if defined(__GNUC__)
#define INLINED inline __attribute__((always_inline, unused))
#else
#define INLINED inline
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define ONE_COPY __attribute__((noinline, noclone))
#else
#define ONE_COPY NO_INLINE
#endif
#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32) && defined(__GNUC__) && \
    !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>
#define HAS_DSP 1
typedef int32_t pair;
static INLINED int32_t word_at(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}
static INLINED void put_word(void *p, int32_t word)
{
    memcpy(p, &word, sizeof word);
}
static INLINED int32_t odd_int8(int32_t four)
{
    int32_t two; /* the compiler has no name for an extension with a rotation */
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(two) : "r"(four));
    return two;
}
static INLINED int32_t odd_uint8(int32_t four)
{
    int32_t two;
    __asm__("uxtb16 %0, %1, ror #8" : "=r"(two) : "r"(four));
    return two;
}
#define EVEN_int8(four) __sxtb16(four)
#define EVEN_uint8(four) ((int32_t)__uxtb16((uint32_t)(four)))
#define ODD_int8(four) odd_int8(four)
#define ODD_uint8(four) odd_uint8(four)
#define LOWER_HALVES(a, b) ((int32_t)(((uint32_t)(a) & 0xFFFFu) | (uint32_t)(b) << 16))
#define UPPER_HALVES(a, b) ((int32_t)((uint32_t)(a) >> 16 | ((uint32_t)(b) & 0xFFFF0000u)))
typedef int32_t aligned_pair __attribute__((may_alias));
#define PAIR_AT(p) word_at(p)
#define WEIGHTS_AT(p) (*(const aligned_pair *)(const void *)(p))
#define PAIR_OF(first, second) LOWER_HALVES(first, second)
#define DOT2(a, b, sum) __smlad(a, b, sum)
#else
#define HAS_DSP 0
typedef struct { int16_t first, second; } pair;
static INLINED pair pair_of(int16_t first, int16_t second)
{
    const pair two = { first, second };
    return two;
}
static INLINED int32_t dot2(pair a, pair b, int32_t sum)
{
    const uint32_t first = (uint32_t)((int32_t)a.first * b.first);
    const uint32_t second = (uint32_t)((int32_t)a.second * b.second);
    return (int32_t)((uint32_t)sum + first + second);
}
#define PAIR_AT(p) pair_of((p)[0], (p)[1])
#define WEIGHTS_AT(p) PAIR_AT(p)
#define PAIR_OF(first, second) pair_of((int16_t)(first), (int16_t)(second))
#define DOT2(a, b, sum) dot2(a, b, sum)
#endif
