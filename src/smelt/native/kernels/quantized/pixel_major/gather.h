/* Copy the `runs` runs of `length` elements of `n` pixels, one after the other, in whole pairs. */
static IF_CALLED void gather_runs(const int16_t *restrict x, ptrdiff_t n, ptrdiff_t step,
    const int32_t *starts, ptrdiff_t runs, ptrdiff_t length, int16_t *restrict to)
{
    for (; n > 0; --n, x += step) {
        for (ptrdiff_t r = 0; r < runs; ++r) {
            const int16_t *p = x + starts[r];
            for (ptrdiff_t k = length; k > 0; --k)
                *to++ = *p++;
        }
        if (runs * length % 2)
            *to++ = 0;
    }
}
