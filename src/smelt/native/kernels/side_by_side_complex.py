"""C of factors of complex matrices side by side, given by their parts."""

from __future__ import annotations

COMPLEX_LU = """static void complex_lu_@t(lanes_@t *restrict a, lanes_@t *restrict b,
    int32_t *restrict pivots, int32_t *restrict order, ptrdiff_t m, ptrdiff_t n)
{
    const ptrdiff_t count = m < n ? m : n;
    for (ptrdiff_t l = 0; l < @l; ++l)
        for (ptrdiff_t i = 0; i < m; ++i)
            order[l * m + i] = (int32_t)i;
    for (ptrdiff_t k = 0; k < count; ++k) {
        const lanes_@t one = (lanes_@t){0} + (@t)1;
        lanes_@t best = size_@t(a[k * n + k]) + size_@t(b[k * n + k]);
        mask_@t place = (mask_@t){0} + (@i)k;
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            const lanes_@t size = size_@t(a[i * n + k]) + size_@t(b[i * n + k]);
            const mask_@t more = size > best;
            best = pick_@t(more, size, best);
            place = (place & ~more) | (more & (@i)i);
        }
        for (ptrdiff_t l = 0; l < @l; ++l) {
            const ptrdiff_t p = (ptrdiff_t)((@i *)&place)[l];
            @t *const parts[2] = {(@t *)a + l, (@t *)b + l};
            pivots[l * count + k] = (int32_t)p;
            if (p == k)
                continue;
            for (ptrdiff_t part = 0; part < 2; ++part)
                for (ptrdiff_t j = 0; j < n; ++j) {
                    const @t v = parts[part][(k * n + j) * @l];
                    parts[part][(k * n + j) * @l] = parts[part][(p * n + j) * @l];
                    parts[part][(p * n + j) * @l] = v;
                }
            const int32_t row = order[l * m + k];
            order[l * m + k] = order[l * m + p];
            order[l * m + p] = row;
        }
        const lanes_@t re = a[k * n + k], im = b[k * n + k], x = size_@t(re), y = size_@t(im);
        const lanes_@t scale = pick_@t((mask_@t)(x > y), x, y);
        const mask_@t none = (mask_@t)(scale == 0);
        const lanes_@t by = pick_@t(none, one, scale), c = pick_@t(none, one, re / by);
        const lanes_@t s = im / by, divisor = by * (c * c + s * s);
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            const lanes_@t p = a[i * n + k], q = b[i * n + k];
            const lanes_@t along = (p * c + q * s) / divisor, across = (q * c - p * s) / divisor;
            a[i * n + k] = along;
            b[i * n + k] = across;
            for (ptrdiff_t j = k + 1; j < n; ++j) {
                const lanes_@t u = a[k * n + j], v = b[k * n + j];
                a[i * n + j] -= along * u - across * v;
                b[i * n + j] -= along * v + across * u;
            }
        }
    }
}
"""
