"""C of lane-batched implicit QL on symmetric tridiagonal matrices, for eigenvalues.

Each lane has its own block and shift, as LAPACK's ``steqr`` has for one matrix. A lane whose block
does not contain the current row applies the identity rotation. LAPACK iterates from the end of a
block with the smaller diagonal element; here a block is reversed instead.
"""

from __future__ import annotations

PAIR = """/* LAPACK's laev2: eigenvalues of [[a, b], [b, c]], the larger absolute value first, and
   the vector (cosine, sine) of the first. */
static void pair_@t(@t a, @t b, @t c, @t *first, @t *second, @t *cosine, @t *sine)
{
    const @t sum = a + c, difference = a - c, difference_size = __builtin_fabs@s(difference);
    const @t twice_b = b + b, twice_b_size = __builtin_fabs@s(twice_b);
    const int difference_larger = difference_size > twice_b_size;
    const @t more = difference_larger ? difference_size : twice_b_size;
    const @t less = difference_larger ? twice_b_size : difference_size;
    const @t root = more == 0 ? 0 : more * __builtin_sqrt@s(1 + (less / more) * (less / more));
    const int a_first = __builtin_fabs@s(a) > __builtin_fabs@s(c);
    const @t most = a_first ? a : c, least = a_first ? c : a;
    const @t sum_sign = sum < 0 ? (@t)-1 : (@t)1;
    const @t difference_sign = difference < 0 ? (@t)-1 : (@t)1;
    const @t difference_and_root = difference + difference_sign * root;
    *first = (@t)0.5 * (sum + sum_sign * root);
    *second = sum == 0 ? (@t)-0.5 * root : (most / *first) * least - (b / *first) * b;
    if (__builtin_fabs@s(difference_and_root) > twice_b_size) {
        const @t ratio = -twice_b / difference_and_root;
        *sine = 1 / __builtin_sqrt@s(1 + ratio * ratio);
        *cosine = ratio * *sine;
    } else if (twice_b_size == 0) {
        *cosine = 1;
        *sine = 0;
    } else {
        const @t ratio = -difference_and_root / twice_b;
        *cosine = 1 / __builtin_sqrt@s(1 + ratio * ratio);
        *sine = ratio * *cosine;
    }
    if (sum_sign == difference_sign) {
        const @t old = *cosine;
        *cosine = -*sine;
        *sine = old;
    }
}
"""

QL = """typedef struct {
    @i low[@l], high[@l], end[@l], next[@l], pair[@l], flipped[@l], split[@l];
} steps_@t;

/* Set bit i of a lane's split if e[i] is negligible, in the present order of elements. */
static void split_@t(steps_@t *steps, const lanes_@t *restrict d, const lanes_@t *restrict e,
    ptrdiff_t bottom, ptrdiff_t top)
{
    mask_@t found = {0};
    for (ptrdiff_t i = bottom; i < top; ++i) {
        const lanes_@t most = (@t)(@e * @e) * size_@t(d[i]) * size_@t(d[i + 1]) + (@t)@z;
        found |= (mask_@t)(e[i] * e[i] <= most) & (@i)((@u)1 << i);
    }
    *(mask_@t *)steps->split = found;
}

static void reverse_@t(@t *restrict d, @t *restrict e, @t *restrict z, ptrdiff_t n,
    ptrdiff_t low, ptrdiff_t high)
{
    for (ptrdiff_t i = low, j = high; i < j; ++i, --j) {
        const @t kept = d[i * @l];
        d[i * @l] = d[j * @l];
        d[j * @l] = kept;
        for (ptrdiff_t r = 0; r < n; ++r) {
            const @t moved = z[(i * n + r) * @l];
            z[(i * n + r) * @l] = z[(j * n + r) * @l];
            z[(j * n + r) * @l] = moved;
        }
    }
    for (ptrdiff_t i = low, j = high - 1; i < j; ++i, --j) {
        const @t kept = e[i * @l];
        e[i * @l] = e[j * @l];
        e[j * @l] = kept;
    }
}

/* Set a lane's next block, low to high; low becomes n if the lane is done. */
static void settle_@t(steps_@t *steps, ptrdiff_t l, @t *restrict d, @t *restrict e,
    @t *restrict z, ptrdiff_t n)
{
    while (steps->low[l] < n) {
        const ptrdiff_t low = steps->low[l];
        if (low > steps->end[l]) {
            ptrdiff_t from = steps->next[l], to = from;
            if (from >= n) {
                steps->low[l] = steps->high[l] = (@i)n;
                return;
            }
            while (to < n - 1) {
                const @t size = __builtin_fabs@s(e[to * @l]);
                const @t near = __builtin_sqrt@s(__builtin_fabs@s(d[to * @l]))
                    * __builtin_sqrt@s(__builtin_fabs@s(d[to * @l + @l])) * (@t)@e;
                if (size <= near)
                    break;
                ++to;
            }
            if (to < n - 1)
                e[to * @l] = 0;
            steps->low[l] = (@i)from;
            steps->end[l] = (@i)to;
            steps->next[l] = (@i)to + 1;
            steps->flipped[l] = __builtin_fabs@s(d[to * @l]) < __builtin_fabs@s(d[from * @l]);
            if (steps->flipped[l])
                reverse_@t(d, e, z, n, from, to);
            steps->split[l] = 0;
            continue;
        }
        const uint64_t ends = (uint64_t)(@u)steps->split[l] >> low;
        const uint64_t last = (uint64_t)1 << (steps->end[l] - low);
        const ptrdiff_t high = low + __builtin_ctzll(ends | last);
        if (high < n - 1 && high < steps->end[l])
            e[high * @l] = 0;
        if (high > low) {
            steps->high[l] = (@i)high;
            steps->pair[l] = high == low + 1;
            return;
        }
        ++steps->low[l];
    }
}

/* d = eigenvalues, columns of z = z times the eigenvectors. Returns 1 without convergence. */
static int ql_@t(lanes_@t *restrict d, lanes_@t *restrict e, lanes_@t *restrict z, ptrdiff_t n,
    const int *restrict skip)
{
    const lanes_@t zero = {0}, one = zero + (@t)1;
    steps_@t steps;
    for (ptrdiff_t l = 0; l < @l; ++l) {
        steps.low[l] = (@i)(skip[l] ? n : 0);
        steps.high[l] = steps.low[l];
        steps.end[l] = -1;
        steps.next[l] = 0;
        steps.pair[l] = 0;
    }
    for (ptrdiff_t left = 30 * n;; --left) {
        lanes_@t at_low, after, between, at_high, pair_c = one, pair_s = zero;
        ptrdiff_t bottom = n, top = 0;
        for (ptrdiff_t l = 0; l < @l; ++l) {
            @t *const dl = (@t *)d + l, *const el = (@t *)e + l;
            settle_@t(&steps, l, dl, el, (@t *)z + l, n);
            const ptrdiff_t low = steps.low[l], high = steps.high[l];
            const int going = low < n;
            const ptrdiff_t here = going ? low : 0;
            ((@t *)&at_low)[l] = dl[here * @l];
            ((@t *)&after)[l] = dl[(here + going) * @l];
            ((@t *)&between)[l] = going ? el[here * @l] : (@t)1;
            ((@t *)&at_high)[l] = dl[(going ? high : 0) * @l];
            if (!going)
                continue;
            bottom = low < bottom ? low : bottom;
            top = high > top ? high : top;
            if (steps.pair[l]) {
                @t *const c = (@t *)&pair_c + l, *const s = (@t *)&pair_s + l;
                const ptrdiff_t first = steps.flipped[l] ? low + 1 : low;
                const ptrdiff_t second = steps.flipped[l] ? low : low + 1;
                pair_@t(dl[first * @l], el[low * @l], dl[second * @l], dl + first * @l,
                    dl + second * @l, c, s);
                *s = steps.flipped[l] ? *s : -*s;
                el[low * @l] = 0;
            }
        }
        if (top == 0 || left == 0)
            return top != 0;
        const mask_@t low = *(mask_@t *)steps.low, high = *(mask_@t *)steps.high;
        const mask_@t pairs = *(mask_@t *)steps.pair != 0, ql = ~pairs;
        lanes_@t g = (after - at_low) / (between + between), c = one, s = one, p = zero;
        const lanes_@t size = size_@t(g), most = pick_@t((mask_@t)(size > one), size, one);
        const lanes_@t least = pick_@t((mask_@t)(size > one), one, size), part = least / most;
        g += signed_@t(most * root_@t(one + part * part), g);
        g = at_high - at_low + between / g;
        for (ptrdiff_t i = top - 1; i >= bottom; --i) {
            const mask_@t here = ((mask_@t){0} + (@i)i >= low) & ((mask_@t){0} + (@i)i < high);
            const mask_@t on = here & ql, last = (mask_@t){0} + (@i)i == low;
            const mask_@t inner = on & ((mask_@t){0} + (@i)(i + 1) < high);
            lanes_@t cosine, sine;
            const lanes_@t b = c * e[i];
            const lanes_@t r = rotation_@t(g, s * e[i], &cosine, &sine);
            const lanes_@t rest = d[i + 1] - p;
            const lanes_@t move = (d[i] - rest) * sine + (cosine + cosine) * b;
            e[i + 1] = pick_@t(inner, r, e[i + 1]);
            p = pick_@t(on, sine * move, p);
            d[i + 1] = pick_@t(on, rest + p, d[i + 1]);
            g = pick_@t(on, cosine * move - b, g);
            c = pick_@t(on, cosine, c);
            s = pick_@t(on, sine, s);
            d[i] = pick_@t(on & last, d[i] - p, d[i]);
            e[i] = pick_@t(on & last, g, e[i]);
            cosine = pick_@t(on, cosine, pick_@t(here, pair_c, one));
            sine = pick_@t(on, sine, pick_@t(here, pair_s, zero));
            rotate_@t(z + (i + 1) * n, z + i * n, n, cosine, sine);
        }
        split_@t(&steps, d, e, bottom, top);
    }
}
"""
