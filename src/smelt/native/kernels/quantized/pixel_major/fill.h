static IF_CALLED void fill_elements(int16_t *to, ptrdiff_t n, int16_t value)
{
    for (; n > 0; --n)
        *to++ = value;
}
