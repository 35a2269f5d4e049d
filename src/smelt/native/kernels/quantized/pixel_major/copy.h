/* Copy `n` pixels of all channels, which are `plane` bytes apart: those of a pixel side by side. */
static IF_CALLED void copy_pixels_BYTE(const BYTE_t *restrict from, ptrdiff_t channels,
    ptrdiff_t plane, ptrdiff_t n, int16_t *restrict to)
{
    ptrdiff_t c = 0;
    for (; channels % 2 == 0 && c < channels; c += 2) {
        const BYTE_t *a = from + c * plane, *b = a + plane;
        int16_t *p = to + c;
        ptrdiff_t q = 0;
#if HAS_DSP
        for (; n - q >= 4; q += 4, a += 4, b += 4) {
            const int32_t first = word_at(a), second = word_at(b);
            const int32_t even = EVEN_BYTE(first), odd = ODD_BYTE(first);
            const int32_t beside = EVEN_BYTE(second), next = ODD_BYTE(second);
            put_word(p, LOWER_HALVES(even, beside)), p += channels;
            put_word(p, LOWER_HALVES(odd, next)), p += channels;
            put_word(p, UPPER_HALVES(even, beside)), p += channels;
            put_word(p, UPPER_HALVES(odd, next)), p += channels;
        }
#endif
        for (; q < n; ++q, p += channels) {
            p[0] = *a++;
            p[1] = *b++;
        }
    }
    for (; c < channels; ++c) {
        const BYTE_t *a = from + c * plane;
        for (ptrdiff_t q = 0; q < n; ++q)
            to[c + q * channels] = a[q];
    }
}
