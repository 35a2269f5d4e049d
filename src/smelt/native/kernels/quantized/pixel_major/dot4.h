/* Four bytes times four weights of a column, which are the bytes of a word, or times four weights of
   two columns at once. Two words hold these: the first has 16 bits for rows 0 and 2, the second for
   rows 1 and 3. The 16 bits are the weight of the first column, plus 256 times that of the second. So
   a sum `s` of such products is the sum `t` of the first column plus 256 times that of the second. */
#define WRAPPED_SUM(s, t) ((int32_t)((uint32_t)(s) + (uint32_t)(t)))
#define SECOND_SUM(s, t) ((int32_t)((uint32_t)(s) - (uint32_t)(t)) >> 8)
#if HAS_DSP
#define ADD_TWO(both, x, s, t) { \
    s = DOT2(both, x, s); \
    t = DOT2(EVEN_int8(both), x, t); \
}
#define ADD_COLUMNS_BYTE(p) { \
    const int32_t four = word_at(p); \
    const int32_t even = EVEN_BYTE(four), odd = ODD_BYTE(four); \
    const int32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3]; \
    ADD_TWO(w0, even, s0, t0) \
    ADD_TWO(w1, odd, s0, t0) \
    ADD_TWO(w2, even, s1, t1) \
    ADD_TWO(w3, odd, s1, t1) \
    w += 4; \
}
static INLINED int32_t dot4_BYTE(const BYTE_t *p, int32_t weights, int32_t sum)
{
    const int32_t four = word_at(p);
    sum = DOT2(EVEN_int8(weights), EVEN_BYTE(four), sum);
    return DOT2(ODD_int8(weights), ODD_BYTE(four), sum);
}
#else
#define ADD_PRODUCT(x, w, sum) sum = WRAPPED_SUM(sum, (int32_t)(x) * (w))
#define ADD_TWO(word, x, y, s, t) { \
    const int16_t both = (int16_t)(word), next = (int16_t)((word) >> 16); \
    ADD_PRODUCT(x, both, s); \
    ADD_PRODUCT(y, next, s); \
    ADD_PRODUCT(x, (int8_t)both, t); \
    ADD_PRODUCT(y, (int8_t)next, t); \
}
#define ADD_COLUMNS_BYTE(p) { \
    ADD_TWO(w[0], (p)[0], (p)[2], s0, t0) \
    ADD_TWO(w[1], (p)[1], (p)[3], s0, t0) \
    ADD_TWO(w[2], (p)[0], (p)[2], s1, t1) \
    ADD_TWO(w[3], (p)[1], (p)[3], s1, t1) \
    w += 4; \
}
static INLINED int32_t dot4_BYTE(const BYTE_t *p, int32_t weights, int32_t sum)
{
    for (int k = 0; k < 4; ++k)
        ADD_PRODUCT(p[k], (int8_t)(weights >> 8 * k), sum);
    return sum;
}
#endif
#define DOT4_BYTE(p, w, sum) dot4_BYTE(p, w, sum)
