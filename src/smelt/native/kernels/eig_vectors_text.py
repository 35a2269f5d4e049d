"""C for eigenvectors of triangular matrices, and of real ones with 2x2 blocks.

After LAPACK's ``trevc``, ``gebak`` and the end of ``geev``, so that vectors have the same signs.
"""

from __future__ import annotations

PAIRS = """/* Widen count real numbers in the first half of a to complex numbers, in place. */
static void eig_widen(ptrdiff_t count, eig_number *a)
{
    for (ptrdiff_t i = count - 1; i >= 0; --i) {
        const double x = ((double *)a)[i];
        a[i] = eig_of(x, 0);
    }
}

/* Make 2x2 blocks triangular, the eigenvalue with positive imaginary part first. pair is 1 for it,
   2 if the number above the diagonal was negative; it is negative for the other of the pair. */
static void eig_pairs(ptrdiff_t n, eig_number *t, eig_number *z, int *pair)
{
    for (ptrdiff_t p = 0; p < n; ++p)
        pair[p] = 0;
    for (ptrdiff_t p = 0; p + 1 < n; ++p) {
        const double d = t[p * n + p].re, b = t[p * n + p + 1].re, c = t[(p + 1) * n + p].re;
        const double above = fabs(b), below = fabs(c), w = sqrt(above) * sqrt(below);
        double x, s;
        if (below == 0)
            continue;
        x = sqrt(above / (above + below)) * (b < 0 && above < below ? -1 : 1);
        s = sqrt(below / (above + below)) * (b < 0 && above >= below ? -1 : 1);
        pair[p] = b < 0 ? 2 : 1;
        pair[p + 1] = -pair[p];
        for (ptrdiff_t i = 0; i < 2 * n; ++i) {
            eig_number *const q = (i < n ? t + i * n : z + (i - n) * n) + p;
            const eig_number u = q[0], v = q[1];
            q[0] = eig_of(x * u.re - s * v.im, x * u.im + s * v.re);
            q[1] = eig_of(x * v.re - s * u.im, x * v.im + s * u.re);
        }
        for (ptrdiff_t j = p; j < n; ++j) {
            eig_number *const q = t + p * n + j;
            const eig_number u = q[0], v = q[n];
            q[0] = eig_of(x * u.re + s * v.im, x * u.im - s * v.re);
            q[n] = eig_of(x * v.re + s * u.im, x * v.im - s * u.re);
        }
        t[p * n + p] = eig_of(d, w);
        t[(p + 1) * n + p] = eig_of(0, 0);
        t[(p + 1) * n + p + 1] = eig_of(d, -w);
        ++p;
    }
}
"""

VECTOR = """/* x = eigenvector k of the triangular t, 1 at k. Equal eigenvalues are treated as
   almost equal. For a real eigenvalue, numbers outside of pairs are real. */
static void eig_solve(ptrdiff_t n, const eig_number *t, const int *pair, ptrdiff_t k, int left,
    double eps, eig_number *x)
{
    const eig_number value = t[k * n + k];
    const double least = fmax(eps * eig_size(value), 1e-200);
    for (ptrdiff_t i = 0; i < n; ++i)
        x[i] = eig_of(i == k, 0);
    for (ptrdiff_t r = 1; left ? k + r < n : r <= k; ++r) {
        const ptrdiff_t i = left ? k + r : k - r;
        eig_number sum = {0, 0}, by = eig_minus(t[i * n + i], value);
        for (ptrdiff_t j = left ? k : i + 1; j < (left ? i : k + 1); ++j) {
            const eig_number a = left ? eig_conj(t[j * n + i]) : t[i * n + j];
            sum = eig_minus(sum, eig_times(a, x[j]));
        }
        if (pair && !pair[k] && !pair[i])
            sum.im = 0;
        by = eig_size(by) < least ? eig_of(least, 0) : left ? eig_conj(by) : by;
        x[i] = eig_over(sum, by);
        if (eig_size(x[i]) > 1e50) {
            const double size = eig_size(x[i]);
            for (ptrdiff_t j = 0; j < n; ++j)
                x[j] = eig_of(x[j].re / size, x[j].im / size);
        }
    }
}

/* v = vector k before balancing by numbers, of length 1, with a real largest number. */
static void eig_vector(ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi, const eig_number *z,
    const double *by, int left, const int *pair, const eig_number *x, eig_number *v)
{
    const double flip = left && pair && *pair == 2 ? -1 : 1;
    double sum = 0, most = 0;
    ptrdiff_t top = -1;
    eig_number phase = {1, 0};
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double scale = i < lo || i >= hi ? 1 : left ? 1 / by[i] : by[i];
        v[i] = eig_of(0, 0);
        for (ptrdiff_t j = 0; j < n; ++j) {
            const eig_number a = eig_times(z[i * n + j], x[j]);
            v[i].re += a.re;
            v[i].im += a.im;
        }
        v[i] = eig_of(v[i].re * scale, pair && !*pair ? 0 : v[i].im * scale);
        most = fmax(most, eig_size(v[i]));
    }
    eig_put_back(n, lo, hi, by, (double *)v, 2);
    for (ptrdiff_t i = 0; i < n; ++i) {
        v[i] = eig_of(v[i].re / most, v[i].im / most);
        sum += v[i].re * v[i].re + v[i].im * v[i].im;
    }
    most = 0;
    for (ptrdiff_t i = 0; i < n && (!pair || *pair); ++i) {
        const double size = v[i].re * v[i].re + v[i].im * v[i].im;
        if (size > most) {
            most = size;
            top = i;
        }
    }
    if (top >= 0)
        phase = eig_of(v[top].re / sqrt(most), v[top].im / sqrt(most));
    /* As in LAPACK, the largest number of a vector of a real matrix may be negative. */
    if (pair && phase.re * flip < 0)
        phase = eig_of(-phase.re, -phase.im);
    for (ptrdiff_t i = 0; i < n; ++i) {
        v[i] = eig_times(v[i], eig_conj(phase));
        v[i] = eig_of(v[i].re / sqrt(sum), i == top ? 0 : v[i].im / sqrt(sum));
    }
}
"""
