"""C that lane-batched QR and QL share: rotations, one per lane.

Placeholders are those of ``lane_batched_text.OF_TYPE``.
"""

from __future__ import annotations

MASKS = """typedef @i mask_@t
    __attribute__((vector_size(64), aligned(sizeof(@t)), may_alias));

static inline lanes_@t pick_@t(mask_@t where, lanes_@t yes, lanes_@t no)
{
    return (lanes_@t)((where & (mask_@t)yes) | (~where & (mask_@t)no));
}

static inline lanes_@t size_@t(lanes_@t x)
{
    const mask_@t sign = (mask_@t)((lanes_@t){0} - (@t)0) | (@i)((@u)1 << (8 * sizeof(@t) - 1));
    return (lanes_@t)((mask_@t)x & ~sign);
}

static inline lanes_@t signed_@t(lanes_@t size, lanes_@t sign)
{
    const mask_@t bit = (mask_@t){0} | (@i)((@u)1 << (8 * sizeof(@t) - 1));
    return (lanes_@t)((mask_@t)size | ((mask_@t)sign & bit));
}

static inline lanes_@t root_@t(lanes_@t x)
{
    for (ptrdiff_t l = 0; l < @l; ++l)
        ((@t *)&x)[l] = __builtin_sqrt@s(((@t *)&x)[l]);
    return x;
}
"""

NEAR = """/* Scale each lane by a power of two that brings its largest number near 1, unless it is
   between 1/@h and @h. back is the inverse; skip marks lanes with non-finite numbers. */
static void near_@t(lanes_@t *restrict a, ptrdiff_t n, lanes_@t *restrict back,
    int *restrict skip)
{
    lanes_@t most = {0}, wrong = {0}, by;
    int scaled = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const lanes_@t size = size_@t(a[i]);
        wrong += a[i] * 0;
        most = pick_@t((mask_@t)(size > most), size, most);
    }
    for (ptrdiff_t l = 0; l < @l; ++l) {
        const @t largest = ((@t *)&most)[l];
        int power = 0;
        skip[l] = ((@t *)&wrong)[l] != 0;
        if (!skip[l] && largest != 0 && !(largest <= (@t)@h && largest >= 1 / (@t)@h))
            (void)__builtin_frexp@s(largest, &power);
        power = power < -@p ? -@p : power > @p ? @p : power;
        scaled |= power;
        ((@t *)&by)[l] = __builtin_ldexp@s(1, -power);
        ((@t *)back)[l] = __builtin_ldexp@s(1, power);
    }
    for (ptrdiff_t i = 0; i < (scaled ? n : 0); ++i)
        a[i] *= by;
}
"""

ROTATION = """/* Return r = c f + s g for the rotation with c g - s f = 0; r has the sign of f.
   Scaling by a power of two, which is exact, keeps squares in range. */
static inline lanes_@t rotation_@t(lanes_@t f, lanes_@t g, lanes_@t *c, lanes_@t *s)
{
    const @i exponents = (@i)((@u)2 * (sizeof(@t) == 4 ? 127 : 1023) << @m);
    const lanes_@t one = (lanes_@t){0} + (@t)1;
    const lanes_@t a = size_@t(f), b = size_@t(g);
    const mask_@t larger = (mask_@t)pick_@t((mask_@t)(a > b), a, b);
    const mask_@t power = larger & (@i)((@u)(sizeof(@t) == 4 ? 255 : 2047) << @m);
    const lanes_@t by = (lanes_@t)(exponents - power), back = (lanes_@t)power;
    const lanes_@t x = f * by + 0, y = g * by;
    const lanes_@t length = root_@t(x * x + y * y);
    const mask_@t none = (mask_@t)(length == 0);
    const lanes_@t divisor = pick_@t(none, one, length), r = signed_@t(length, x);
    *c = pick_@t(none, one, size_@t(x) / divisor);
    *s = y / signed_@t(divisor, x);
    return r * back;
}
"""

ROTATE = """/* (x, y) = (c x + s y, c y - s x), for n vectors each. */
static inline void rotate_@t(lanes_@t *restrict x, lanes_@t *restrict y, ptrdiff_t n,
    lanes_@t c, lanes_@t s)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        const lanes_@t first = x[i], second = y[i];
        x[i] = c * first + s * second;
        y[i] = c * second - s * first;
    }
}
"""
