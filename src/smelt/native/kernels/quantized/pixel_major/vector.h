/* One pixel of `depth` bytes times columns, four of them at a time. Four rows of four columns
   are four words, two of each pair of columns (`dot4.h`); further columns follow one by one. */
static ONE_COPY void vector_NAME(const BYTE_t *x, ptrdiff_t depth, ptrdiff_t columns,
    const int32_t *w, const ending *e, ptrdiff_t channel, RESULT *out)
{
    const ptrdiff_t whole = depth / 4 * 4;
    BYTE_t rest[4] = { 0 };
    for (ptrdiff_t k = whole; k < depth; ++k)
        rest[k - whole] = x[k];
    for (; columns >= 4; columns -= 4, channel += 4, out += 4) {
        int32_t s0 = 0, s1 = 0, t0 = 0, t1 = 0;
        const BYTE_t *p = x;
        for (const BYTE_t *const end = x + whole / 8 * 8; p != end; p += 8) {
            ADD_COLUMNS_BYTE(p)
            ADD_COLUMNS_BYTE(p + 4)
        }
        if (whole % 8) {
            ADD_COLUMNS_BYTE(p)
        }
        if (whole != depth) {
            ADD_COLUMNS_BYTE(rest)
        }
        const int32_t *bias = e->bias + channel;
        const int32_t u0 = SECOND_SUM(s0, t0), u1 = SECOND_SUM(s1, t1);
        out[0] = finish_NAME(scale_of_NAME(e, channel), WRAPPED_SUM(bias[0], t0));
        out[1] = finish_NAME(scale_of_NAME(e, channel + 1), WRAPPED_SUM(bias[1], u0));
        out[2] = finish_NAME(scale_of_NAME(e, channel + 2), WRAPPED_SUM(bias[2], t1));
        out[3] = finish_NAME(scale_of_NAME(e, channel + 3), WRAPPED_SUM(bias[3], u1));
    }
    while (columns-- > 0) {
        int32_t s = e->bias[channel];
        for (const BYTE_t *p = x, *end = x + whole; p != end; p += 4)
            s = DOT4_BYTE(p, *w++, s);
        if (whole != depth)
            s = DOT4_BYTE(rest, *w++, s);
        *out++ = finish_NAME(scale_of_NAME(e, channel++), s);
    }
}
