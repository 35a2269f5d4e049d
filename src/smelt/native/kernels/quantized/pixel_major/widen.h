/* Weights as 16 bits. In memory, the second and the third byte of each four have changed places. */
static IF_CALLED void widen_pairs(const int8_t *restrict from, ptrdiff_t n, int16_t *restrict to)
{
    for (; n > 0; n -= 4, from += 4, to += 4) {
#if HAS_DSP
        const int32_t four = word_at(from);
        put_word(to, EVEN_int8(four));
        put_word(to + 2, ODD_int8(four));
#else
        to[0] = from[0];
        to[1] = from[2];
        to[2] = from[1];
        to[3] = from[3];
#endif
    }
}
