/* What follows the sums of a layer, by filter or column: nothing, or how they become bytes. */
typedef struct {
    const int32_t *bias;
    const float *factors, *fractions;
    const int32_t *multipliers, *shifts, *zeros;
    int32_t zero;
} ending;
/* A float below 2**22 becomes the integer next to it, plus WHOLE, by adding 1.5 * 2**23, which
   leaves no room for fractions. The barrier keeps the compiler from rounding product and sum at
   once. */
#if defined(__ARM_FP) && defined(__ARM_PCS_VFP) && defined(__GNUC__) && !defined(__FAST_MATH__)
#define WHOLE 0x4B400000
static INLINED int32_t whole_float(float v)
{
    int32_t bits;
    __asm__("" : "+t"(v));
    v += 12582912.0f;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}
#else
#define WHOLE 0
#define whole_float(v) ((int32_t)lrintf(v))
#endif
static INLINED float clamped(float v)
{
    return v < -1024.0f ? -1024.0f : v > 1024.0f ? 1024.0f : v;
}
#if HAS_DSP
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* in the macros of the compiler's header */
static INLINED int32_t saturated_int8(int32_t v)
{
    return __ssat(v, 8);
}
static INLINED int32_t saturated_uint8(int32_t v)
{
    return (int32_t)__usat(v, 8);
}
#pragma GCC diagnostic pop
#define SATURATED_int8(v) saturated_int8(v)
#define SATURATED_uint8(v) saturated_uint8(v)
#else
#define SATURATED_int8(v) ((v) < -128 ? -128 : (v) > 127 ? 127 : (v))
#define SATURATED_uint8(v) ((v) < 0 ? 0 : (v) > 255 ? 255 : (v))
#endif
