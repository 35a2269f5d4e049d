typedef struct {
    int32_t multiplier, shift, zero;
} scale_NAME;
static INLINED scale_NAME scale_of_NAME(const ending *e, ptrdiff_t channel)
{
    const scale_NAME scale = { e->multipliers[channel], e->shifts[channel], ZERO };
    return scale;
}
static INLINED BYTE_t finish_NAME(scale_NAME scale, int32_t sum)
{
    return (BYTE_t)fixed_byte(sum, scale.multiplier, scale.shift, scale.zero, LOW);
}
