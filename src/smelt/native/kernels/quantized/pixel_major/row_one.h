/* As `row_by_four`, of one filter. */
static ONE_COPY void row_by_one_NAME(const int16_t *x, ptrdiff_t n, ptrdiff_t step,
    const int32_t *starts, ptrdiff_t runs, ptrdiff_t length, const int16_t *w, const ending *e,
    ptrdiff_t channel, RESULT *out, ptrdiff_t pitch, ptrdiff_t next)
{
    const scale_NAME a = scale_of_NAME(e, channel);
    (void)pitch;
    for (; n > 0; n -= 2, x += 2 * step, out += 2 * next) {
        const ptrdiff_t apart = n > 1 ? step : 0;
        const int16_t *b = w;
        int32_t s = e->bias[channel], t = s;
        for (ptrdiff_t r = 0; r < runs; ++r) {
            const int16_t *p = x + starts[r], *q = p + apart;
            const int16_t *const end = b + 2 * length;
            for (; b != end; b += 2, p += 2, q += 2) {
                const pair u = PAIR_AT(b);
                s = DOT2(u, PAIR_AT(p), s), t = DOT2(u, PAIR_AT(q), t);
            }
        }
        out[0] = finish_NAME(a, s);
        if (n > 1)
            out[next] = finish_NAME(a, t);
    }
}
