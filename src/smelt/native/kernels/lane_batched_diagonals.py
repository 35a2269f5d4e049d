"""C of the lane-batched reduction of matrices to tridiagonal or bidiagonal form.

Placeholders are those of ``lane_batched_text.OF_TYPE``.
"""

from __future__ import annotations

TRIDIAGONAL = """/* LAPACK's sytd2: make the symmetric a tridiagonal by reflections. */
static void tridiagonal_@t(lanes_@t *restrict a, @t *restrict taus,
    lanes_@t *restrict w, ptrdiff_t n)
{
    /* Copy the upper triangle to the lower one. */
    for (ptrdiff_t i = 0; i < n; ++i)
        for (ptrdiff_t j = i + 1; j < n; ++j)
            a[i * n + j] = a[j * n + i];
    for (ptrdiff_t i = 0; i + 1 < n; ++i) {
        const ptrdiff_t rows = n - 1 - i;
        lanes_@t *const v = a + (i + 1) * n + i, *const rest = v + 1;
        lanes_@t by, beta, dot = {0};
        @t tau[@l];
        reflection_@t(v, rows, n, tau);
        for (ptrdiff_t l = 0; l < @l; ++l) {
            taus[l * (n - 1) + i] = tau[l];
            ((@t *)&by)[l] = tau[l];
        }
        beta = v[0];
        v[0] = (lanes_@t){0} + (@t)1;
        for (ptrdiff_t r = 0; r < rows; ++r)
            w[r] = (lanes_@t){0};
        for (ptrdiff_t c = 0; c < rows; ++c) {
            const lanes_@t share = v[c * n];
            for (ptrdiff_t r = 0; r < rows; ++r)
                w[r] += share * rest[c * n + r];
        }
        for (ptrdiff_t r = 0; r < rows; ++r) {
            w[r] *= by;
            dot += w[r] * v[r * n];
        }
        dot *= by * (@t)-0.5;
        for (ptrdiff_t r = 0; r < rows; ++r)
            w[r] += dot * v[r * n];
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const lanes_@t down = v[r * n], across = w[r];
            for (ptrdiff_t c = 0; c < rows; ++c)
                rest[r * n + c] -= down * w[c] + across * v[c * n];
        }
        v[0] = beta;
    }
}
"""

BIDIAGONAL = """/* LAPACK's gebd2 for m >= n: diagonal d, superdiagonal e, reflections in a. */
static void bidiagonal_@t(lanes_@t *restrict a, lanes_@t *restrict d,
    lanes_@t *restrict e, @t *restrict lefts, @t *restrict rights, lanes_@t *restrict w,
    ptrdiff_t m, ptrdiff_t n)
{
    e[n - 1] = (lanes_@t){0};
    for (ptrdiff_t k = 0; k < n; ++k) {
        lanes_@t *const from = a + k * n + k, *const row = from + 1;
        const ptrdiff_t columns = n - 1 - k;
        lanes_@t by;
        reflection_@t(from, m - k, n, lefts + k * @l);
        reflect_@t(from, n, lefts + k * @l, row, n, w, m - k, columns);
        d[k] = from[0];
        if (columns == 0)
            break;
        reflection_@t(row, columns, 1, rights + k * @l);
        e[k] = row[0];
        for (ptrdiff_t l = 0; l < @l; ++l)
            ((@t *)&by)[l] = rights[k * @l + l];
        for (ptrdiff_t i = 1; i < m - k; ++i) {
            lanes_@t *const to = row + i * n;
            lanes_@t dot = to[0];
            for (ptrdiff_t j = 1; j < columns; ++j)
                dot += row[j] * to[j];
            dot *= by;
            to[0] -= dot;
            for (ptrdiff_t j = 1; j < columns; ++j)
                to[j] -= dot * row[j];
        }
    }
}
"""
