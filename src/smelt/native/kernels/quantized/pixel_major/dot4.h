/* Four bytes times four weights, which are bytes, too, added to a 32-bit sum. */
#if HAS_DSP
#define ADD_WORD(four, even, odd, sum) { \
    const int32_t word = word_at(four); \
    sum = DOT2(EVEN_int8(word), even, sum); \
    sum = DOT2(ODD_int8(word), odd, sum); \
}
#define ADD_COLUMNS_BYTE(p) { \
    const int32_t four = word_at(p); \
    const int32_t even = EVEN_BYTE(four), odd = ODD_BYTE(four); \
    ADD_WORD(w, even, odd, s0) \
    ADD_WORD(w + 4, even, odd, s1) \
    ADD_WORD(w + 8, even, odd, s2) \
    ADD_WORD(w + 12, even, odd, s3) \
}
static INLINED int32_t dot4_BYTE(const BYTE_t *p, const int8_t *w, int32_t sum)
{
    const int32_t four = word_at(p);
    ADD_WORD(w, EVEN_BYTE(four), ODD_BYTE(four), sum)
    return sum;
}
#else
#define ADD_BYTE(x, w, sum) sum = (int32_t)((uint32_t)(sum) + (uint32_t)((int32_t)(x) * (w)))
#define ADD_COLUMNS_BYTE(p) \
    for (ptrdiff_t k = 0; k < 4; ++k) { \
        ADD_BYTE(p[k], w[k], s0); \
        ADD_BYTE(p[k], w[k + 4], s1); \
        ADD_BYTE(p[k], w[k + 8], s2); \
        ADD_BYTE(p[k], w[k + 12], s3); \
    }
static INLINED int32_t dot4_BYTE(const BYTE_t *p, const int8_t *w, int32_t sum)
{
    for (ptrdiff_t k = 0; k < 4; ++k)
        ADD_BYTE(p[k], w[k], sum);
    return sum;
}
#endif
#define DOT4_BYTE(p, w, sum) dot4_BYTE(p, w, sum)
