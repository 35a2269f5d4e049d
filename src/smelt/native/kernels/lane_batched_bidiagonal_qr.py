"""C of lane-batched implicit QR on bidiagonal matrices, for singular values.

The steps are those of LAPACK's ``bdsqr``, with a block, a shift and an end per lane. LAPACK works
from the end of a block that has the larger number. Here it is always the upper end: the block is
reversed if needed, because ``J B^T J`` has both diagonals in reversed order, and left and right
vectors swapped. Lanes with nothing to do apply the identity rotation.
"""

from __future__ import annotations

VALUES_OF_PAIR = """/* LAPACK's lasv2: singular values of [[f, g], [0, h]] with signs, the
   larger absolute value first, and the rotations that make it diagonal:
   [[cl, sl], [-sl, cl]] [[f, g], [0, h]] [[cr, -sr], [sr, cr]]. */
static void values_of_pair_@t(@t f, @t g, @t h, @t *most, @t *least, @t *cl, @t *sl, @t *cr,
    @t *sr)
{
    const int swapped = __builtin_fabs@s(h) > __builtin_fabs@s(f);
    const @t first = swapped ? h : f, second = swapped ? f : h;
    const @t a = __builtin_fabs@s(first), c = __builtin_fabs@s(second), b = __builtin_fabs@s(g);
    @t left_c = 1, left_s = 0, right_c = 1, right_s = 0, large = a, small = c;
    if (b != 0) {
        const int huge = b > a && a / b < (@t)@e;
        if (huge) {
            large = b;
            small = c > 1 ? a / (b / c) : a / b * c;
            left_s = second / g;
            right_s = 1;
            right_c = first / g;
        } else {
            const @t gap = a - c, l = gap == a ? 1 : gap / a, m = g / first;
            const @t t = 2 - l, mm = m * m, tt = t * t;
            const @t s = __builtin_sqrt@s(tt + mm);
            const @t r = l == 0 ? __builtin_fabs@s(m) : __builtin_sqrt@s(l * l + mm);
            const @t mean = (@t)0.5 * (s + r);
            @t slope;
            small = c / mean;
            large = a * mean;
            if (mm != 0)
                slope = (m / (s + t) + m / (r + l)) * (1 + mean);
            else if (l == 0)
                slope = __builtin_copysign@s(2, first) * __builtin_copysign@s(1, g);
            else
                slope = g / __builtin_copysign@s(gap, first) + m / t;
            const @t length = __builtin_sqrt@s(slope * slope + 4);
            right_c = 2 / length;
            right_s = slope / length;
            left_c = (right_c + right_s * m) / mean;
            left_s = second / first * right_s / mean;
        }
    }
    *cl = swapped ? right_s : left_c;
    *sl = swapped ? right_c : left_s;
    *cr = swapped ? left_s : right_c;
    *sr = swapped ? left_c : right_s;
    @t sign = __builtin_copysign@s(1, f) * __builtin_copysign@s(1, *cr)
        * __builtin_copysign@s(1, *cl);
    if (b > a)
        sign = __builtin_copysign@s(1, *sr) * __builtin_copysign@s(1, *cl)
            * __builtin_copysign@s(1, g);
    else if (swapped)
        sign = __builtin_copysign@s(1, *sr) * __builtin_copysign@s(1, *sl)
            * __builtin_copysign@s(1, h);
    *most = __builtin_copysign@s(large, sign);
    *least = __builtin_copysign@s(small, sign * __builtin_copysign@s(1, f)
        * __builtin_copysign@s(1, h));
}
"""

SHIFT = """/* The smaller singular values of [[f, g], [0, h]]. */
static lanes_@t shift_@t(lanes_@t f, lanes_@t g, lanes_@t h)
{
    const lanes_@t one = (lanes_@t){0} + (@t)1;
    const lanes_@t a = size_@t(f), b = size_@t(g), c = size_@t(h);
    const mask_@t first = (mask_@t)(a > c);
    const lanes_@t most = pick_@t(first, a, c), least = pick_@t(first, c, a);
    const mask_@t none = (mask_@t)(most == 0);
    const lanes_@t by = pick_@t(none, one, most), large = pick_@t((mask_@t)(b > by), b, by);
    const lanes_@t p = by / large, q = b / large;
    const lanes_@t up = (1 + least / by) * p, down = (most - least) / by * p;
    return 2 * least * p / (root_@t(up * up + q * q) + root_@t(down * down + q * q));
}
"""

BIDIAGONAL_QR = """typedef struct {
    @i low[@l], high[@l], older_low[@l], older_high[@l], pair[@l], zero[@l], swapped[@l];
} qr_steps_@t;

/* Replace a block B by J B^T J, which swaps its left and right vectors. */
static void transpose_@t(@t *restrict d, @t *restrict e, @t *restrict left, @t *restrict right,
    ptrdiff_t n, ptrdiff_t low, ptrdiff_t high, int vectors)
{
    for (ptrdiff_t i = low, j = high; i < j; ++i, --j) {
        const @t kept = d[i * @l];
        d[i * @l] = d[j * @l];
        d[j * @l] = kept;
    }
    for (ptrdiff_t i = low, j = high - 1; i < j; ++i, --j) {
        const @t kept = e[i * @l];
        e[i * @l] = e[j * @l];
        e[j * @l] = kept;
    }
    for (ptrdiff_t i = low; i <= (vectors ? high : -1); ++i)
        for (ptrdiff_t r = 0, j = low + high - i; r < n; ++r) {
            const @t moved = left[(i * n + r) * @l];
            left[(i * n + r) * @l] = right[(j * n + r) * @l];
            right[(j * n + r) * @l] = moved;
        }
}

/* Set negligible numbers of e to 0. For each block that ends at i, compute the largest number, and
   a lower bound of its smallest singular value. */
static void criteria_@t(qr_steps_@t *steps, lanes_@t *restrict d, lanes_@t *restrict e,
    lanes_@t *restrict most, lanes_@t *restrict least, lanes_@t limit, ptrdiff_t n)
{
    const @t tolerance = (@t)@q * (@t)@e;
    mask_@t zero = {0};
    lanes_@t mu = size_@t(d[0]), bound = mu, largest = mu;
    most[0] = least[0] = mu;
    for (ptrdiff_t i = 0; i + 1 < n; ++i) {
        const lanes_@t beside = size_@t(e[i]), next = size_@t(d[i + 1]);
        const mask_@t small = (mask_@t)(beside <= tolerance * mu) | (mask_@t)(beside <= limit);
        e[i] = (lanes_@t)((mask_@t)e[i] & ~small);
        zero |= small & (@i)((@u)1 << i);
        mu = pick_@t(small, next, next * (mu / (mu + beside)));
        bound = pick_@t(small | (mask_@t)(mu < bound), mu, bound);
        largest = pick_@t((mask_@t)(beside > largest), beside, largest);
        largest = pick_@t(small | (mask_@t)(next > largest), next, largest);
        most[i + 1] = largest;
        least[i + 1] = bound;
    }
    *(mask_@t *)steps->zero = zero;
}

/* Set a lane's next block; high becomes 0 if the lane is done. Returns 1 if the block is new and
   was transposed, so its criteria have to be computed again. */
static int settle_qr_@t(qr_steps_@t *steps, ptrdiff_t l, @t *restrict d, @t *restrict e,
    @t *restrict left, @t *restrict right, ptrdiff_t n, int vectors)
{
    steps->pair[l] = 0;
    while (steps->high[l] > 0) {
        const ptrdiff_t high = steps->high[l];
        const uint64_t zero = (@u)steps->zero[l];
        const uint64_t below = zero & (((uint64_t)1 << high) - 1);
        const ptrdiff_t low = below ? 64 - __builtin_clzll(below) : 0;
        if (low == high) {
            --steps->high[l];
            continue;
        }
        steps->low[l] = (@i)low;
        steps->pair[l] = low + 1 == high;
        if (steps->pair[l])
            return 0;
        if (low > steps->older_high[l] || high < steps->older_low[l]) {
            steps->older_low[l] = (@i)low;
            steps->older_high[l] = (@i)high;
            if (__builtin_fabs@s(d[low * @l]) < __builtin_fabs@s(d[high * @l])) {
                transpose_@t(d, e, left, right, n, low, high, vectors);
                steps->swapped[l] ^= (@i)((((uint64_t)2 << high) - 1) ^ (((uint64_t)1 << low) - 1));
                return 1;
            }
        }
        if (__builtin_fabs@s(e[(high - 1) * @l])
            > (@t)@q * (@t)@e * __builtin_fabs@s(d[high * @l])) {
            steps->older_low[l] = (@i)low;
            steps->older_high[l] = (@i)high;
            return 0;
        }
        e[(high - 1) * @l] = 0;
        steps->zero[l] |= (@i)((@u)1 << (high - 1));
    }
    return 0;
}

/* Set the rotations of a lane whose block has two rows, and finish that block. */
static void turn_pair_@t(qr_steps_@t *steps, ptrdiff_t l, @t *restrict d, @t *restrict e,
    @t *restrict cl, @t *restrict sl, @t *restrict cr, @t *restrict sr)
{
    const ptrdiff_t low = steps->low[l], swapped = (ptrdiff_t)((@u)steps->swapped[l] >> low & 1);
    @t *const first = d + (low + swapped) * @l, *const second = d + (low + 1 - swapped) * @l;
    @t lc, ls, rc, rs;
    values_of_pair_@t(*first, e[low * @l], *second, first, second, &lc, &ls, &rc, &rs);
    e[low * @l] = 0;
    *cl = swapped ? rc : lc;
    *sl = swapped ? -rs : ls;
    *cr = swapped ? lc : rc;
    *sr = swapped ? -ls : rs;
}

/* d = singular values with signs. Column j of left and of right are n vectors of lanes from j * n
   on. Bit j of a lane's swapped is set if its column j is in the other array. If vectors is 0,
   neither is read. */
static int bidiagonal_qr_@t(lanes_@t *restrict d, lanes_@t *restrict e, lanes_@t *restrict left,
    lanes_@t *restrict right, lanes_@t *restrict most, lanes_@t *restrict least, ptrdiff_t n,
    const int *restrict skip, mask_@t *restrict swapped, int vectors)
{
    const @t tolerance = (@t)@q * (@t)@e;
    const lanes_@t zero = {0}, one = zero + (@t)1;
    lanes_@t mu = size_@t(d[0]), limit = mu;
    qr_steps_@t steps;
    for (ptrdiff_t i = 1; i < n; ++i) {
        const lanes_@t down = mu + size_@t(e[i - 1]);
        mu = size_@t(d[i]) * (mu / pick_@t((mask_@t)(down == 0), one, down));
        limit = pick_@t((mask_@t)(mu < limit), mu, limit);
    }
    limit *= tolerance / __builtin_sqrt@s((@t)n);
    const lanes_@t lowest = zero + (@t)@z * 6 * (@t)(n * n);
    limit = pick_@t((mask_@t)(limit > lowest), limit, lowest);
    for (ptrdiff_t l = 0; l < @l; ++l) {
        steps.high[l] = (@i)(skip[l] ? 0 : n - 1);
        steps.low[l] = 0;
        steps.older_low[l] = (@i)n;
        steps.older_high[l] = -1;
        steps.swapped[l] = 0;
    }
    for (ptrdiff_t rounds = 60 * n; rounds > 0; --rounds) {
        lanes_@t at_low, before, between, at_high, bound, size;
        lanes_@t pair_cl = one, pair_sl = zero, pair_cr = one, pair_sr = zero;
        ptrdiff_t bottom = n, top = 0;
        int again = 0;
        criteria_@t(&steps, d, e, most, least, limit, n);
        for (ptrdiff_t l = 0; l < @l; ++l)
            again |= settle_qr_@t(&steps, l, (@t *)d + l, (@t *)e + l, (@t *)left + l,
                (@t *)right + l, n, vectors);
        if (again)
            continue;
        for (ptrdiff_t l = 0; l < @l; ++l) {
            @t *const dl = (@t *)d + l, *const el = (@t *)e + l;
            const ptrdiff_t high = steps.high[l], going = high > 0, low = going ? steps.low[l] : 0;
            ((@t *)&at_low)[l] = going ? dl[low * @l] : 1;
            ((@t *)&at_high)[l] = dl[high * @l];
            ((@t *)&before)[l] = dl[(high - going) * @l];
            ((@t *)&between)[l] = going ? el[(high - 1) * @l] : 0;
            ((@t *)&bound)[l] = ((@t *)least)[high * @l + l];
            ((@t *)&size)[l] = ((@t *)most)[high * @l + l];
            if (!going)
                continue;
            bottom = low < bottom ? low : bottom;
            top = high > top ? high : top;
            if (steps.pair[l])
                turn_pair_@t(&steps, l, dl, el, (@t *)&pair_cl + l, (@t *)&pair_sl + l,
                    (@t *)&pair_cr + l, (@t *)&pair_sr + l);
        }
        if (top == 0) {
            *swapped = *(mask_@t *)steps.swapped;
            return 0;
        }
        const mask_@t low = *(mask_@t *)steps.low, high = *(mask_@t *)steps.high;
        const mask_@t pairs = *(mask_@t *)steps.pair != 0;
        lanes_@t shift = shift_@t(before, between, at_high);
        const lanes_@t start = size_@t(at_low), part = shift / start;
        const @t enough = (@t)0.01 * tolerance > (@t)@e ? (@t)0.01 * tolerance : (@t)@e;
        const mask_@t plain = (mask_@t)((@t)n * tolerance * bound <= enough * size)
            | ~(mask_@t)(part * part >= (@t)@e);
        shift = (lanes_@t)((mask_@t)shift & ~plain);
        lanes_@t f = (start - shift) * (signed_@t(one, at_low) + shift / at_low), g = zero;
        lanes_@t c = one, old_c = one, old_s = zero;
        for (ptrdiff_t i = bottom; i < top; ++i) {
            const mask_@t here = ((mask_@t){0} + (@i)i >= low) & ((mask_@t){0} + (@i)i < high);
            const mask_@t on = here & ~pairs, first = (mask_@t){0} + (@i)i == low;
            const mask_@t last = on & ((mask_@t){0} + (@i)(i + 1) == high), inner = on & ~first;
            const lanes_@t di = d[i], ei = e[i], next = d[i + 1];
            lanes_@t cr, sr, cl, sl;
            g = pick_@t(first | plain, ei, g);
            const lanes_@t r = rotation_@t(pick_@t(plain, di * c, f), g, &cr, &sr);
            if (i > 0)
                e[i - 1] = pick_@t(inner, pick_@t(plain, old_s * r, r), e[i - 1]);
            const lanes_@t across = cr * ei - sr * di, rotated_next = cr * next;
            const lanes_@t along = pick_@t(plain, old_c * r, cr * di + sr * ei);
            const lanes_@t value = rotation_@t(along, sr * next, &cl, &sl);
            d[i] = pick_@t(on, value, di);
            f = pick_@t(on, cl * across + sl * rotated_next, f);
            const lanes_@t ended = next * cr;
            const lanes_@t down = pick_@t(plain, pick_@t(last, ended * cl, next),
                cl * rotated_next - sl * across);
            d[i + 1] = pick_@t(on, down, next);
            e[i] = pick_@t(last, pick_@t(plain, ended * sl, f), pick_@t(on & ~plain, across, ei));
            if (i + 2 < n) {
                const mask_@t shifted = on & ~last & ~plain;
                g = pick_@t(shifted, sl * e[i + 1], g);
                e[i + 1] = pick_@t(shifted, cl * e[i + 1], e[i + 1]);
            }
            c = pick_@t(on, cr, c);
            old_c = pick_@t(on, cl, old_c);
            old_s = pick_@t(on, sl, old_s);
            if (!vectors)
                continue;
            cr = pick_@t(on, cr, pick_@t(here, pair_cr, one));
            sr = pick_@t(on, sr, pick_@t(here, pair_sr, zero));
            cl = pick_@t(on, cl, pick_@t(here, pair_cl, one));
            sl = pick_@t(on, sl, pick_@t(here, pair_sl, zero));
            rotate_@t(right + i * n, right + (i + 1) * n, n, cr, sr);
            rotate_@t(left + i * n, left + (i + 1) * n, n, cl, sl);
        }
    }
    return 1;
}
"""
