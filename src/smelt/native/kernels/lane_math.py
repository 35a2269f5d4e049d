"""Branch-free exp, tanh, erf, expm1, log, log1p, sin and cos of floats, which loops vectorize.

Each is within 4 ulp of the true value, keeps NaN, infinities and the sign of 0, and needs no option
that relaxes floating point. The polynomials are our own minimax fits, by reweighted least squares
over Chebyshev nodes.
"""

from __future__ import annotations

import re

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lane_sincos import COS, SIN, SIN_QUARTERS

IN_LOOPS = """#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define IN_LOOPS inline __attribute__((always_inline))
#else
#define IN_LOOPS inline
#endif
"""
"""Forces inlining: GCC stops inlining once a file grows by a third, and a loop with calls is ten
times as slow."""

LANE_FMA = """#undef LANE_FMA
#if defined(__FMA__) && defined(__GNUC__) && !defined(__clang__)
#define LANE_FMA(a, b, c) __builtin_fmaf((a), (b), (c))
#else
#define LANE_FMA(a, b, c) ((a) * (b) + (c))
#endif
"""
"""A fused multiply-add where the CPU has one, also in loops compiled without contraction."""

EXP = """static IN_LOOPS float lane_exp(float x)
{
    /* x = n log 2 + r with |r| <= log 2 / 2; adding 1.5 * 2^23 rounds to n. p is twice exp r. */
    const float low = x < -104.0f ? -104.0f : x, c = low > 89.0f ? 89.0f : low;
    const float shifted = LANE_FMA(c, 1.44269504f, 12582912.0f), n = shifted - 12582912.0f;
    const float r = LANE_FMA(n, 2.12194440e-4f, LANE_FMA(n, -0.693359375f, c));
    const float step = x < -87.33654f ? 2.16840434e-19f : 0.0f;
    const uint32_t back = x < -87.33654f ? 0xdf800000u : 0xe0000000u;
    float p = 2.76289344e-3f, power;
    uint32_t bits, more;
    p = LANE_FMA(p, r, 1.67375617e-2f);
    p = LANE_FMA(p, r, 8.33367854e-2f);
    p = LANE_FMA(p, r, 3.33330392e-1f);
    p = LANE_FMA(p, r, 0.99999988f);
    p = LANE_FMA(p, r, 2.0f);
    p = LANE_FMA(p, r, 2.0f);
    /* power = 2^n, or 2^(n + 64) for n < 0: many CPUs multiply subnormal numbers a hundred times
       slower. Adding step = 2^-62, whose last place is 2^64 times that of subnormals, rounds such
       results. GCC's ~ of 512 bits would wait for the register that it overwrites. */
    memcpy(&bits, &shifted, 4);
    more = (bits & 0x400000u) << 7;
    bits = (bits << 23) - more + 0x5f000000u;
    memcpy(&power, &bits, 4);
    p = p * power + step;
    memcpy(&bits, &p, 4);
    bits += more + back;
    memcpy(&p, &bits, 4);
    return p;
}
"""

NARROW_EXP = """static IN_LOOPS float lane_narrow_exp(float x)
{
    /* lane_exp for x between -80 and 80. */
    const float shifted = LANE_FMA(x, 1.44269504f, 12582912.0f), n = shifted - 12582912.0f;
    const float r = LANE_FMA(n, 2.12194440e-4f, LANE_FMA(n, -0.693359375f, x));
    float p = 1.38144672e-3f, power;
    uint32_t bits;
    p = LANE_FMA(p, r, 8.36878084e-3f);
    p = LANE_FMA(p, r, 4.16683927e-2f);
    p = LANE_FMA(p, r, 1.66665196e-1f);
    p = LANE_FMA(p, r, 0.49999994f);
    p = LANE_FMA(p, r, 1.0f);
    p = LANE_FMA(p, r, 1.0f);
    memcpy(&bits, &shifted, 4);
    bits = (bits - 0x4b400000u + 127u) << 23;
    memcpy(&power, &bits, 4);
    return p * power;
}
"""

TANH = """static IN_LOOPS float lane_tanh(float x)
{
    const float a = fabsf(x), z = x * x, c = a > 10.0f ? 10.0f : a;
    const float e = 1.0f - 2.0f / (lane_narrow_exp(2.0f * c) + 1.0f), far = x < 0 ? -e : e;
    float p = -5.71701349e-3f;
    p = LANE_FMA(p, z, 2.06503306e-2f);
    p = LANE_FMA(p, z, -5.37434891e-2f);
    p = LANE_FMA(p, z, 1.33314908e-1f);
    p = LANE_FMA(p, z, -3.33332837e-1f);
    p = LANE_FMA(p, z, 1.0f) * x;
    return a < 0.625f ? p : far;
}
"""

ERF = """static IN_LOOPS float lane_erf(float x)
{
    /* |x| < 1: x times a polynomial in x^2. Else 1 - exp(-q), q a polynomial; from 4 on, 1. */
    const float a = fabsf(x), z = x * x, t = (a > 4.0f ? 4.0f : a) - 1.0f;
    float p = 7.88911057e-5f, q = -2.51381977e-7f, far;
    p = LANE_FMA(p, z, -8.02083872e-4f);
    p = LANE_FMA(p, z, 5.18953521e-3f);
    p = LANE_FMA(p, z, -2.68544443e-2f);
    p = LANE_FMA(p, z, 1.12836003e-1f);
    p = LANE_FMA(p, z, -3.76126260e-1f);
    p = LANE_FMA(p, z, 1.12837911f);
    q = LANE_FMA(q, t, 2.33045394e-5f);
    q = LANE_FMA(q, t, -2.93622317e-4f);
    q = LANE_FMA(q, t, 2.01719208e-3f);
    q = LANE_FMA(q, t, -1.00500379e-2f);
    q = LANE_FMA(q, t, 4.15647849e-2f);
    q = LANE_FMA(q, t, 8.43106866e-1f);
    q = LANE_FMA(q, t, 2.63896751f);
    q = LANE_FMA(q, t, 1.84960556f);
    far = 1.0f - lane_narrow_exp(-q);
    far = x < 0 ? -far : far;
    return a < 1.0f ? p * x : far;
}
"""

EXPM1 = """static IN_LOOPS float lane_expm1(float x)
{
    /* expm1 x = 2^n expm1(r) + (2^n - 1), n and r as in lane_exp. For x > 17, use exp x. */
    const float low = x < -104.0f ? -104.0f : x, c = low > 17.0f ? 17.0f : low;
    const float shifted = LANE_FMA(c, 1.44269504f, 12582912.0f), n = shifted - 12582912.0f;
    const float r = LANE_FMA(n, 2.12194440e-4f, LANE_FMA(n, -0.693359375f, c)), far = lane_exp(x);
    float p = 1.99157366e-4f, power;
    uint32_t bits;
    p = LANE_FMA(p, r, 1.39464473e-3f);
    p = LANE_FMA(p, r, 8.33326951e-3f);
    p = LANE_FMA(p, r, 4.16662656e-2f);
    p = LANE_FMA(p, r, 1.66666672e-1f);
    p = LANE_FMA(p, r, 0.5f);
    p = LANE_FMA(p * r, r, r);
    memcpy(&bits, &shifted, 4);
    bits -= 0x4b400000u;
    bits = (bits + 127u) << 23;
    memcpy(&power, &bits, 4);
    p = LANE_FMA(power, p, power - 1.0f);
    p = x < -20.0f ? -1.0f : p;
    p = x > 17.0f ? far : p;
    return x == 0 ? x : p;
}
"""

_SERIES = """    f = m - 1.0f;
    z = f * f;
    p = LANE_FMA(p, f, -1.42691333e-1f);
    p = LANE_FMA(p, f, 1.49151517e-1f);
    p = LANE_FMA(p, f, -1.65774116e-1f);
    p = LANE_FMA(p, f, 1.99630156e-1f);
    p = LANE_FMA(p, f, -2.50013413e-1f);
    p = LANE_FMA(p, f, 3.33339118e-1f);
"""
"""The polynomial of log m without its last steps."""

LOG1P = """static IN_LOOPS float lane_log1p(float x)
{
    /* 1 + x = 2^n m, with m from sqrt(1/2) to sqrt(2); lost corrects the rounding of 1 + x. */
    const float u = 1.0f + x, lost = (x - (u - 1.0f)) / u;
    float m, f, z, p = 8.70145052e-2f, n;
    uint32_t bits;
    memcpy(&bits, &u, 4);
    bits += 0x3f800000u - 0x3f3504f3u;
    n = (float)(int32_t)(bits >> 23) - 127.0f;
    bits = (bits & 0x007fffffu) + 0x3f3504f3u;
    memcpy(&m, &bits, 4);
SERIES    p = LANE_FMA(LANE_FMA(p, f, -0.5f), z, LANE_FMA(n, -2.12194440e-4f, lost));
    p = LANE_FMA(n, 0.693359375f, p + f);
    p = u > 0 ? p : u < 0 ? NAN : -INFINITY;
    p = u > 3.4028234e38f ? x : p;
    p = x == 0 ? x : p;
    return x != x ? x : p;
}
""".replace("SERIES", _SERIES)

LOG = """static IN_LOOPS float lane_log(float x)
{
    /* As lane_log1p, without 1 +. A subnormal x is first multiplied by 2^23. */
    const int few = x < 1.17549435e-38f;
    const float u = few ? x * 8388608.0f : x;
    float m, f, z, p = 8.70145052e-2f, n;
    uint32_t bits;
    memcpy(&bits, &u, 4);
    bits += 0x3f800000u - 0x3f3504f3u;
    n = (float)(int32_t)(bits >> 23) - (few ? 150.0f : 127.0f);
    bits = (bits & 0x007fffffu) + 0x3f3504f3u;
    memcpy(&m, &bits, 4);
SERIES    p = LANE_FMA(LANE_FMA(p, f, -0.5f), z, n * -2.12194440e-4f);
    p = LANE_FMA(n, 0.693359375f, p + f);
    p = x > 0 ? p : x < 0 ? NAN : -INFINITY;
    p = x > 3.4028234e38f ? x : p;
    return x != x ? x : p;
}
""".replace("SERIES", _SERIES)

FUNCTIONS = {
    "expf": (EXP,),
    "tanhf": (NARROW_EXP, TANH),
    "erff": (NARROW_EXP, ERF),
    "expm1f": (EXP, EXPM1),
    "log1pf": (LOG1P,),
    "logf": (LOG,),
    "sinf": (SIN_QUARTERS, SIN),
    "cosf": (SIN_QUARTERS, COS),
}
"""The C that replaces each math.h function; functions that others call come first."""

_CALL = re.compile(rf"\b({'|'.join(FUNCTIONS)})\(")
_NAME = re.compile(r"(lane_\w+)\(")


def in_lanes(cx: KernelContext, text: str) -> str:
    """Return ``text`` with calls of ``math.h`` replaced by calls of this file's functions."""

    def replaced(match: re.Match[str]) -> str:
        """Return the call of the replacement, and add its functions to the kernel."""
        cx.call("IN_LOOPS", IN_LOOPS)
        cx.call("LANE_FMA", LANE_FMA)
        for function in FUNCTIONS[match[1]]:
            name = _NAME.search(function)
            assert name is not None
            cx.call(name[1], function)
        return f"lane_{match[1][:-1]}("

    return _CALL.sub(replaced, text)
