"""Branch-free sin and cos of floats of all magnitudes, within 2 ulp.

The argument reduction is that of Payne and Hanek (1983), in doubles: x is multiplied only by the
bits of 1 / (2 pi) that affect the fraction of the product. Each of four ranges of x has a scale, a
power of 2, and the fraction of 1 / (2 pi) times its inverse in three parts of 28, 28 and 53 bits,
whose products with a float are exact.
"""

from __future__ import annotations

SIN_QUARTERS = """#undef LANE_SINCOS
#if !defined(__OPTIMIZE__) || defined(VECTOR_SINES)
#elif defined(__AVX2__) || (defined(__clang__) && defined(SUMS) && SUMS == 8)
#define LANE_SINCOS
#endif
#if defined(LANE_SINCOS)
static IN_LOOPS float lane_sin_quarters(float x, int32_t quarters)
{
    /* x = k turns + q quarter turns + r. t, u and v * third are the products with the three parts;
       whole turns are dropped exactly. Where scale is not 1, x is an integer. */
    const double d = (double)x, a = fabs(d);
    const int big = a >= 2251799813685248.0, huge = a >= 6.044629098073146e+23;
    const int most = a >= 1.6225927682921336e+32;
    const double scale = most ? 5.169878828456423e-26 : huge ? 1.3877787807814457e-17
        : big ? 3.725290298461914e-09 : 1.0;
    const double first = most ? 0.37218980863690376 : huge ? 0.29100095108151436
        : big ? -0.2764730267226696 : 0.15915494412183762;
    const double second = most ? 8.067339851702826e-10 : huge ? 1.386515083301454e-09
        : big ? 1.0840630199071555e-09 : -1.0299422842363626e-09;
    const double third = most ? -6.378498112344344e-18 : huge ? 3.0053182646326145e-18
        : big ? 5.1651711996897015e-18 : 4.038449470223213e-18;
    const double v = d * scale, t = v * first, u = v * second;
    const double m = t - ((t + 6755399441055744.0) - 6755399441055744.0);
    const double n = u - ((u + 6755399441055744.0) - 6755399441055744.0);
    const double q = ((m + n) * 4.0 + 6755399441055744.0) - 6755399441055744.0;
    float r = (float)((((m - q * 0.25) + n) + v * third) * 6.283185307179586);
    const float z = r * r;
    const int32_t i = (int32_t)q + quarters;
    float s = -1.95146305e-4f, c = 2.4432411e-5f;
    s = LANE_FMA(s, z, 8.33215564e-3f);
    s = LANE_FMA(s, z, -1.66666552e-1f);
    s = LANE_FMA(s * z, r, r);
    c = LANE_FMA(c, z, -1.38873095e-3f);
    c = LANE_FMA(c, z, 4.16666456e-2f);
    c = LANE_FMA(c * z, z, LANE_FMA(z, -0.5f, 1.0f));
    r = i & 1 ? c : s;
    return i & 2 ? -r : r;
}
#endif
"""
"""The sine of x plus a number of quarter turns. It is left out where math.h is faster: without
vectors of doubles, and with the GNU C library's libmvec (``VECTOR_SINES``). Clang shows the vector
width of a function by ``SUMS`` only."""

SIN = """static IN_LOOPS float lane_sin(float x)
{
#if defined(LANE_SINCOS)
    const float p = lane_sin_quarters(x, 0);
    return x == 0 ? x : p;
#else
    return sinf(x);
#endif
}
"""

COS = """static IN_LOOPS float lane_cos(float x)
{
#if defined(LANE_SINCOS)
    return lane_sin_quarters(x, 1);
#else
    return cosf(x);
#endif
}
"""
