/* One pixel of `depth` bytes times columns, four of them at a time. Weights are bytes, in groups of
   four along the depth, of four columns side by side; further columns follow one by one. */
static ONE_COPY void vector_NAME(const BYTE_t *x, ptrdiff_t depth, ptrdiff_t columns,
    const int8_t *w, const ending *e, ptrdiff_t channel, RESULT *out)
{
    const ptrdiff_t whole = depth / 4 * 4;
    BYTE_t rest[4] = { 0 };
    for (ptrdiff_t k = whole; k < depth; ++k)
        rest[k - whole] = x[k];
    for (; columns >= 4; columns -= 4, channel += 4, out += 4) {
        int32_t s0 = e->bias[channel], s1 = e->bias[channel + 1];
        int32_t s2 = e->bias[channel + 2], s3 = e->bias[channel + 3];
        for (const BYTE_t *p = x, *end = x + whole; p != end; p += 4, w += 16) {
            ADD_COLUMNS_BYTE(p)
        }
        if (whole != depth) {
            ADD_COLUMNS_BYTE(rest)
            w += 16;
        }
        out[0] = finish_NAME(scale_of_NAME(e, channel), s0);
        out[1] = finish_NAME(scale_of_NAME(e, channel + 1), s1);
        out[2] = finish_NAME(scale_of_NAME(e, channel + 2), s2);
        out[3] = finish_NAME(scale_of_NAME(e, channel + 3), s3);
    }
    while (columns-- > 0) {
        int32_t s = e->bias[channel];
        for (const BYTE_t *p = x, *end = x + whole; p != end; p += 4, w += 4)
            s = DOT4_BYTE(p, w, s);
        if (whole != depth) {
            s = DOT4_BYTE(rest, w, s);
            w += 4;
        }
        *out++ = finish_NAME(scale_of_NAME(e, channel++), s);
    }
}
