"""C that balances matrices so that eigenvalues have less error, as LAPACK's ``geev`` does.

All numbers are scaled by a power of two. Rows and columns without off-diagonal elements are
exchanged to the ends, which leaves less work; the others are scaled until each row and its column
have similar norms. After LAPACK's ``gebal``: B. Parlett and C. Reinsch, "Balancing a matrix", 1969.
A number has ``w`` parts: 2 in complex matrices.
"""

from __future__ import annotations

SCALE = """/* Scale all numbers by a power of two that brings the largest near 1, exactly. */
static int eig_scale(ptrdiff_t count, double *a)
{
    double most = 0;
    int power = 0;
    for (ptrdiff_t i = 0; i < count; ++i)
        most = most >= fabs(a[i]) ? most : fabs(a[i]);
    if (most == 0)
        return 0;
    frexp(most, &power);
    for (ptrdiff_t i = 0; i < count; ++i)
        a[i] = ldexp(a[i], -power);
    return power;
}
"""

ISOLATE = """static void eig_swap(ptrdiff_t count, double *a, double *b, ptrdiff_t step,
    ptrdiff_t width)
{
    for (ptrdiff_t i = 0; i < count; ++i)
        for (ptrdiff_t part = 0; part < width; ++part) {
            const double kept = a[i * step + part];
            a[i * step + part] = b[i * step + part];
            b[i * step + part] = kept;
        }
}

static int eig_alone(ptrdiff_t n, ptrdiff_t w, const double *a, ptrdiff_t i, ptrdiff_t lo,
    ptrdiff_t hi, ptrdiff_t step, ptrdiff_t stride)
{
    for (ptrdiff_t j = lo; j < hi; ++j)
        for (ptrdiff_t part = 0; part < w; ++part)
            if (j != i && a[(i * step + j * stride) * w + part] != 0)
                return 0;
    return n > 0;
}

static void eig_exchange(ptrdiff_t n, ptrdiff_t w, double *a, ptrdiff_t i, ptrdiff_t j)
{
    eig_swap(n, a + i * w, a + j * w, n * w, w);
    eig_swap(n, a + i * n * w, a + j * n * w, w, w);
}

/* Exchange rows and columns without off-diagonal numbers to the ends: i with by[i]. */
static void eig_isolate(ptrdiff_t n, ptrdiff_t w, double *a, double *by, ptrdiff_t *lo,
    ptrdiff_t *hi)
{
    ptrdiff_t first = 0, end = n;
    for (int found = 1; found;) {
        found = 0;
        for (ptrdiff_t i = end - 1; i >= 0 && end > 0; --i)
            if (eig_alone(n, w, a, i, 0, end, n, 1)) {
                by[--end] = (double)i;
                eig_exchange(n, w, a, i, end);
                found = 1;
            }
    }
    for (int found = end > 0; found;) {
        found = 0;
        for (ptrdiff_t j = first; j < end; ++j)
            if (eig_alone(n, w, a, j, first, end, 1, n)) {
                by[first] = (double)j;
                eig_exchange(n, w, a, j, first++);
                found = 1;
            }
    }
    *lo = first;
    *hi = end;
}

/* Undo the exchanges of eig_isolate in the rows of v, which have count numbers. */
static void eig_put_back(ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi, const double *by, double *v,
    ptrdiff_t width)
{
    for (ptrdiff_t r = 0; r < lo + n - hi; ++r) {
        const ptrdiff_t i = r < lo ? lo - 1 - r : hi + r - lo;
        eig_swap(1, v + i * width, v + (ptrdiff_t)by[i] * width, 0, width);
    }
}
"""

BALANCE = """static double eig_length(ptrdiff_t count, const double *a, ptrdiff_t step, ptrdiff_t w)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < count; ++i)
        for (ptrdiff_t part = 0; part < w; ++part)
            sum += a[i * step * w + part] * a[i * step * w + part];
    return sqrt(sum);
}

static void eig_balance(ptrdiff_t n, ptrdiff_t w, double *a, double *by, ptrdiff_t lo, ptrdiff_t hi)
{
    for (ptrdiff_t i = lo; i < hi; ++i)
        by[i] = 1;
    for (int found = 1; found;) {
        found = 0;
        for (ptrdiff_t i = lo; i < hi; ++i) {
            double c = eig_length(hi - lo, a + (lo * n + i) * w, n, w);
            double r = eig_length(hi - lo, a + (i * n + lo) * w, 1, w), f = 1;
            const double sum = 0.95 * (c + r);
            if (c == 0 || r == 0)
                continue;
            for (; c < r / 2 && f < 1e75; f *= 2, c *= 2)
                r /= 2;
            for (; c / 2 >= r && f > 1e-75; f /= 2, c /= 2)
                r *= 2;
            if (c + r >= sum || by[i] * f < 1e-75 || by[i] * f > 1e75)
                continue;
            by[i] *= f;
            found = 1;
            for (ptrdiff_t j = 0; j < n * w; ++j)
                a[i * n * w + j] /= f;
            for (ptrdiff_t j = 0; j < n; ++j)
                for (ptrdiff_t part = 0; part < w; ++part)
                    a[(j * n + i) * w + part] *= f;
        }
    }
}
"""

TEXTS = {"eig_scale": SCALE, "eig_isolate": ISOLATE}
"""The first steps of a Schur form; ``eig_balance`` is for eigenvalues only."""
