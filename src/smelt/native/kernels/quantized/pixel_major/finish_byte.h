typedef struct {
    float factor, fraction;
    int32_t zero;
} scale_NAME;
static INLINED scale_NAME scale_of_NAME(const ending *e, ptrdiff_t channel)
{
    const scale_NAME scale = { e->factors[channel], FRACTION, e->zero - WHOLE };
    return scale;
}
static INLINED BYTE_t finish_NAME(scale_NAME scale, int32_t sum)
{
    const int32_t v = whole_float(SCALED) + scale.zero;
    return (BYTE_t)SATURATED_BYTE(v);
}
