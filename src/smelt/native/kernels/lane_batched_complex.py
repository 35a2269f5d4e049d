"""C of lane-batched factorizations of complex matrices, given by their parts."""

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

COMPLEX_CHOLESKY = """/* Column by column, two rows at a time; each number minus the dot product
   of the previous columns, divided by the pivot. */
static void complex_cholesky_@t(lanes_@t *restrict a, lanes_@t *restrict b,
    ptrdiff_t n)
{
    const lanes_@t zero = {0};
    lanes_@t failed = zero;
    for (ptrdiff_t j = 0; j < n; ++j) {
        const lanes_@t *const u = a + j * n, *const v = b + j * n;
        lanes_@t pivot = a[j * (n + 1)];
        for (ptrdiff_t k = 0; k < j; ++k)
            pivot -= u[k] * u[k] + v[k] * v[k];
        const lanes_@t root = root_@t(pivot), by = (zero + (@t)1) / root;
        failed += pick_@t((mask_@t)(pivot > 0), zero, zero + (@t)NAN);
        a[j * (n + 1)] = root;
        b[j * (n + 1)] = zero;
        ptrdiff_t i = j + 1;
        for (; i + 2 <= n; i += 2) {
            lanes_@t *const x = a + i * n, *const y = b + i * n;
            lanes_@t re = x[j], im = y[j], low = x[n + j], beside = y[n + j];
            for (ptrdiff_t k = 0; k < j; ++k) {
                re -= x[k] * u[k];
                im -= y[k] * u[k];
                low -= x[n + k] * u[k];
                beside -= y[n + k] * u[k];
                re -= y[k] * v[k];
                im += x[k] * v[k];
                low -= y[n + k] * v[k];
                beside += x[n + k] * v[k];
            }
            x[j] = re * by;
            y[j] = im * by;
            x[n + j] = low * by;
            y[n + j] = beside * by;
        }
        for (; i < n; ++i) {
            lanes_@t *const x = a + i * n, *const y = b + i * n;
            for (ptrdiff_t k = 0; k < j; ++k) {
                x[j] -= x[k] * u[k] + y[k] * v[k];
                y[j] -= y[k] * u[k] - x[k] * v[k];
            }
            x[j] *= by;
            y[j] *= by;
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j <= i; ++j) {
            a[i * n + j] += failed;
            b[i * n + j] += failed;
        }
        for (ptrdiff_t j = i + 1; j < n; ++j)
            a[i * n + j] = b[i * n + j] = zero;
    }
}
"""

COMPLEX_REFLECTION = """/* LAPACK's larfg: the reflection I - t v v^H, v[0] = 1, maps a vector
   to a real first number and zeros. Numbers are scaled near 1 before they are squared. */
static lanes_@t complex_reflection_@t(lanes_@t *restrict a, lanes_@t *restrict b,
    ptrdiff_t rows, ptrdiff_t step, lanes_@t *restrict re, lanes_@t *restrict im)
{
    const @i exponents = (@i)((@u)2 * (sizeof(@t) == 4 ? 127 : 1023) << @m);
    const lanes_@t zero = {0}, one = zero + (@t)1;
    lanes_@t most = zero, rest = zero;
    for (ptrdiff_t i = 0; i < rows; ++i) {
        const lanes_@t x = size_@t(a[i * step]), y = size_@t(b[i * step]);
        const lanes_@t more = pick_@t((mask_@t)(x > y), x, y);
        most = pick_@t((mask_@t)(more > most), more, most);
    }
    const mask_@t power = (mask_@t)most & (@i)((@u)(sizeof(@t) == 4 ? 255 : 2047) << @m);
    const lanes_@t by = (lanes_@t)(exponents - power), back = (lanes_@t)power;
    const lanes_@t x = a[0] * by, y = b[0] * by;
    for (ptrdiff_t i = 1; i < rows; ++i) {
        const lanes_@t u = a[i * step] * by, v = b[i * step] * by;
        rest += u * u + v * v;
    }
    const mask_@t none = (mask_@t)(rest == 0) & (mask_@t)(y == 0);
    const lanes_@t length = signed_@t(root_@t(x * x + y * y + rest), x);
    const lanes_@t beta = -pick_@t(none, one, length), left = x - beta;
    const lanes_@t square = left * left + y * y;
    const lanes_@t c = pick_@t(none, one, left / square * by);
    const lanes_@t s = pick_@t(none, zero, y / square * by);
    const lanes_@t value = pick_@t(none, a[0], beta * back);
    *re = pick_@t(none, zero, (beta - x) / beta);
    *im = pick_@t(none, zero, -y / beta);
    for (ptrdiff_t i = 1; i < rows; ++i) {
        const lanes_@t u = a[i * step], v = b[i * step];
        a[i * step] = u * c + v * s;
        b[i * step] = v * c - u * s;
    }
    a[0] = one;
    b[0] = zero;
    return value;
}
"""

HERMITIAN = """/* LAPACK's hetd2 for the lower triangle: real tridiagonal d and e. Vectors of
   the reflections stay below the diagonal of a and b; their factors are re and im. */
static void hermitian_@t(lanes_@t *restrict a, lanes_@t *restrict b, lanes_@t *restrict d,
    lanes_@t *restrict e, lanes_@t *restrict re, lanes_@t *restrict im, lanes_@t *restrict p,
    lanes_@t *restrict q, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i + 1 < n; ++i) {
        const ptrdiff_t rows = n - 1 - i;
        lanes_@t *const x = a + (i + 1) * n + i, *const y = b + (i + 1) * n + i;
        lanes_@t *const u = x + 1, *const v = y + 1;
        lanes_@t along = {0}, across = {0};
        e[i] = complex_reflection_@t(x, y, rows, n, re + i, im + i);
        for (ptrdiff_t r = 0; r < rows; ++r)
            p[r] = q[r] = (lanes_@t){0};
        for (ptrdiff_t c = 0; c < rows; ++c)
            for (ptrdiff_t r = 0; r < rows; ++r) {
                const lanes_@t m = u[c * n + r], k = -v[c * n + r];
                p[r] += m * x[c * n] - k * y[c * n];
                q[r] += m * y[c * n] + k * x[c * n];
            }
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const lanes_@t s = p[r] * re[i] - q[r] * im[i], t = p[r] * im[i] + q[r] * re[i];
            p[r] = s;
            q[r] = t;
            along += s * x[r * n] + t * y[r * n];
            across += s * y[r * n] - t * x[r * n];
        }
        const lanes_@t k = (across * im[i] - along * re[i]) * (@t)0.5;
        const lanes_@t h = -(along * im[i] + across * re[i]) * (@t)0.5;
        for (ptrdiff_t r = 0; r < rows; ++r) {
            p[r] += k * x[r * n] - h * y[r * n];
            q[r] += k * y[r * n] + h * x[r * n];
        }
        for (ptrdiff_t r = 0; r < rows; ++r)
            for (ptrdiff_t c = 0; c < rows; ++c) {
                const lanes_@t f = x[c * n], g = y[c * n];
                u[r * n + c] -= x[r * n] * p[c] + y[r * n] * q[c] + p[r] * f + q[r] * g;
                v[r * n + c] -= y[r * n] * p[c] - x[r * n] * q[c] + q[r] * f - p[r] * g;
            }
    }
    for (ptrdiff_t i = 0; i < n; ++i)
        d[i] = a[i * (n + 1)];
    e[n - 1] = (lanes_@t){0};
}
"""

COMPLEX_RETURN = """/* s + i t = product of these reflections times s + i t. */
static void complex_return_@t(const lanes_@t *restrict a, const lanes_@t *restrict b,
    const lanes_@t *restrict re, const lanes_@t *restrict im, lanes_@t *restrict s,
    lanes_@t *restrict t, ptrdiff_t n)
{
    for (ptrdiff_t i = n - 2; i >= 0; --i) {
        const lanes_@t *const x = a + (i + 1) * n + i, *const y = b + (i + 1) * n + i;
        for (ptrdiff_t j = 0; j < n; ++j) {
            lanes_@t *const u = s + j * n + i + 1, *const v = t + j * n + i + 1;
            lanes_@t along = {0}, across = {0};
            for (ptrdiff_t r = 0; r < n - 1 - i; ++r) {
                along += x[r * n] * u[r] + y[r * n] * v[r];
                across += x[r * n] * v[r] - y[r * n] * u[r];
            }
            const lanes_@t g = along * re[i] - across * im[i];
            const lanes_@t h = along * im[i] + across * re[i];
            for (ptrdiff_t r = 0; r < n - 1 - i; ++r) {
                u[r] -= x[r * n] * g - y[r * n] * h;
                v[r] -= x[r * n] * h + y[r * n] * g;
            }
        }
    }
}
"""
