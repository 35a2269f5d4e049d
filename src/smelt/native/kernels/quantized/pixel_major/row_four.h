/* A row of `n` results of four filters each, two pixels at a time. A result adds `runs` runs of
   `length` pairs, which begin `starts` after the pixel; pixels are `step` elements apart. Results of
   a filter are `pitch` apart, those of a pixel `next`. `REST` is the remainder of `length` by 4. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options /* early scheduling and allocation by loops take too many registers */
#pragma GCC optimize("no-schedule-insns", "ira-region=one")
#endif
#define ADD_BY_FOUR { \
    const pair v = PAIR_AT(p + apart), u = PAIR_AT(p); \
    const pair w0 = WEIGHTS_AT(b), w1 = WEIGHTS_AT(b + 2); \
    s0 = DOT2(w0, u, s0), t0 = DOT2(w0, v, t0); \
    s1 = DOT2(w1, u, s1), t1 = DOT2(w1, v, t1); \
    const pair w2 = WEIGHTS_AT(b + 4), w3 = WEIGHTS_AT(b + 6); \
    s2 = DOT2(w2, u, s2), t2 = DOT2(w2, v, t2); \
    s3 = DOT2(w3, u, s3), t3 = DOT2(w3, v, t3); \
    p += 2, b += 8; \
}
static ONE_COPY void row_by_four_NAME_REST(const int16_t *x, ptrdiff_t n, ptrdiff_t step,
    const int32_t *starts, ptrdiff_t runs, ptrdiff_t length, const int16_t *w, const ending *e,
    ptrdiff_t channel, RESULT *out, ptrdiff_t pitch, ptrdiff_t next)
{
    const int32_t *bias = e->bias + channel;
    const scale_NAME a0 = scale_of_NAME(e, channel), a1 = scale_of_NAME(e, channel + 1);
    const scale_NAME a2 = scale_of_NAME(e, channel + 2), a3 = scale_of_NAME(e, channel + 3);
    const int16_t *const last = w + 8 * length * runs;
    const ptrdiff_t whole = 8 * (length - REST);
    for (; n > 0; n -= 2, x += 2 * step, out += 2 * next) {
        const ptrdiff_t apart = n > 1 ? step : 0;
        const int16_t *b = w;
        int32_t s0 = bias[0], s1 = bias[1], s2 = bias[2], s3 = bias[3];
        int32_t t0 = s0, t1 = s1, t2 = s2, t3 = s3;
        const int32_t *start = starts;
        while (b != last) {
            const int16_t *p = x + *start++;
            for (const int16_t *const end = b + whole; b != end;) {
                ADD_BY_FOUR
                ADD_BY_FOUR
                ADD_BY_FOUR
                ADD_BY_FOUR
            }
#if REST > 0
            ADD_BY_FOUR
#endif
#if REST > 1
            ADD_BY_FOUR
#endif
#if REST > 2
            ADD_BY_FOUR
#endif
        }
        RESULT *to = out;
        to[0] = finish_NAME(a0, s0), to += pitch;
        to[0] = finish_NAME(a1, s1), to += pitch;
        to[0] = finish_NAME(a2, s2), to += pitch;
        to[0] = finish_NAME(a3, s3);
        if (n == 1)
            return;
        to = out + next;
        to[0] = finish_NAME(a0, t0), to += pitch;
        to[0] = finish_NAME(a1, t1), to += pitch;
        to[0] = finish_NAME(a2, t2), to += pitch;
        to[0] = finish_NAME(a3, t3);
    }
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
