/* Copy `n` rows of `depth` bytes as 16 bits, `pitch` elements apart. */
static IF_CALLED void widen_rows_BYTE(const BYTE_t *restrict from, ptrdiff_t n, ptrdiff_t depth,
    ptrdiff_t pitch, int16_t *restrict to)
{
    for (; n > 0; --n) {
        ptrdiff_t left = depth;
#if HAS_DSP
        for (; left >= 4; left -= 4, from += 4, to += 4) {
            const int32_t four = word_at(from), even = EVEN_BYTE(four), odd = ODD_BYTE(four);
            put_word(to, LOWER_HALVES(even, odd));
            put_word(to + 2, UPPER_HALVES(even, odd));
        }
#endif
        for (; left > 0; --left)
            *to++ = *from++;
        if (depth < pitch)
            *to++ = 0;
    }
}
