"""C for the Schur form of complex matrices: reflections, then QR steps with one shift.

After LAPACK's complex ``gehd2`` and ``lahqr``, whose subdiagonal is real. Everything is computed in
double.
"""

from __future__ import annotations

NUMBERS = """typedef struct {
    double re, im;
} eig_number;

static eig_number eig_of(double re, double im)
{
    const eig_number y = {re, im};
    return y;
}

static eig_number eig_minus(eig_number a, eig_number b)
{
    return eig_of(a.re - b.re, a.im - b.im);
}

static eig_number eig_times(eig_number a, eig_number b)
{
    return eig_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

static eig_number eig_conj(eig_number a)
{
    return eig_of(a.re, -a.im);
}

static eig_number eig_over(eig_number a, eig_number b)
{
    const int wide = fabs(b.re) >= fabs(b.im);
    const double ratio = wide ? b.im / b.re : b.re / b.im;
    const double by = wide ? b.re + b.im * ratio : b.re * ratio + b.im;
    return eig_of((wide ? a.re + a.im * ratio : a.re * ratio + a.im) / by,
        (wide ? a.im - a.re * ratio : a.im * ratio - a.re) / by);
}

static double eig_size(eig_number a)
{
    return fabs(a.re) + fabs(a.im);
}
"""

REFLECT = """static eig_number eig_reflect_complex(ptrdiff_t count, eig_number *v, ptrdiff_t step)
{
    /* v = beta, which is real, then the reflection's vector without its leading 1. */
    const eig_number first = v[0];
    double most = fabs(first.im), sum = 0, beta;
    eig_number by;
    for (ptrdiff_t i = 1; i < count; ++i)
        most = fmax(most, fmax(fabs(v[i * step].re), fabs(v[i * step].im)));
    if (most == 0)
        return eig_of(0, 0);
    most = fmax(most, fabs(first.re));
    for (ptrdiff_t i = 0; i < count; ++i) {
        const double x = v[i * step].re / most, y = v[i * step].im / most;
        sum += x * x + y * y;
    }
    beta = first.re >= 0 ? -most * sqrt(sum) : most * sqrt(sum);
    by = eig_of(first.re - beta, first.im);
    for (ptrdiff_t i = 1; i < count; ++i)
        v[i * step] = eig_over(v[i * step], by);
    v[0] = eig_of(beta, 0);
    return eig_of((beta - first.re) / beta, -first.im / beta);
}

/* Apply a reflection to count rows or columns, size numbers of each, next apart. */
static void eig_apply_complex(ptrdiff_t count, ptrdiff_t size, eig_number *a, ptrdiff_t step,
    ptrdiff_t next, const eig_number *v, eig_number tau, int left)
{
    for (ptrdiff_t i = 0; i < count; ++i) {
        eig_number *const p = a + i * step, sum = {0, 0};
        for (ptrdiff_t j = 0; j < size; ++j) {
            const eig_number u = eig_times(left ? eig_conj(v[j]) : v[j], p[j * next]);
            sum.re += u.re;
            sum.im += u.im;
        }
        sum = eig_times(left ? eig_conj(tau) : tau, sum);
        for (ptrdiff_t j = 0; j < size; ++j)
            p[j * next] = eig_minus(p[j * next], eig_times(sum, left ? v[j] : eig_conj(v[j])));
    }
}
"""

HESSENBERG = """static void eig_hessenberg_complex(ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi,
    eig_number *h, eig_number *z, eig_number *v)
{
    for (ptrdiff_t i = 0; i < n * n; ++i)
        z[i] = eig_of(i / n == i % n, 0);
    for (ptrdiff_t k = lo; k + 1 < hi; ++k) {
        const ptrdiff_t count = hi - k - 1;
        eig_number *const from = h + (k + 1) * n + k;
        const eig_number tau = eig_reflect_complex(count, from, n);
        v[0] = eig_of(1, 0);
        for (ptrdiff_t i = 1; i < count; ++i) {
            v[i] = from[i * n];
            from[i * n] = eig_of(0, 0);
        }
        eig_apply_complex(hi, count, h + k + 1, n, 1, v, tau, 0);
        eig_apply_complex(n, count, z + k + 1, n, 1, v, tau, 0);
        eig_apply_complex(n - k - 1, count, h + (k + 1) * (n + 1), 1, n, v, tau, 1);
    }
}
"""

STEP = """static eig_number eig_root(eig_number a)
{
    const double size = hypot(a.re, a.im), part = sqrt(0.5 * (size + fabs(a.re)));
    const double other = part > 0 ? 0.5 * a.im / part : 0;
    return a.re >= 0 ? eig_of(part, other) : eig_of(fabs(other), a.im < 0 ? -part : part);
}

static int eig_nothing_complex(ptrdiff_t n, const eig_number *h, ptrdiff_t k, ptrdiff_t lo,
    ptrdiff_t hi, double eps)
{
    const eig_number d = h[k * n + k], u = h[(k - 1) * n + k - 1];
    const double x = eig_size(h[k * n + k - 1]), y = eig_size(h[(k - 1) * n + k]);
    const double small = 2.2250738585072014e-308 * (double)n / eps;
    double near = eig_size(d) + eig_size(u), most, least, far;
    if (x <= small)
        return 1;
    if (near == 0)
        near = (k - 2 >= lo ? fabs(h[(k - 1) * n + k - 2].re) : 0)
            + (k + 1 < hi ? fabs(h[(k + 1) * n + k].re) : 0);
    if (!(fabs(h[k * n + k - 1].re) <= eps * near))
        return 0;
    most = fmax(x, y);
    least = fmin(x, y);
    far = fmax(eig_size(d), eig_size(eig_minus(u, d)));
    near = fmin(eig_size(d), eig_size(eig_minus(u, d)));
    return least * (most / (far + most)) <= fmax(small, eps * (near * (far / (far + most))));
}

static eig_number eig_shift_complex(ptrdiff_t n, const eig_number *h, ptrdiff_t first,
    ptrdiff_t last, int step)
{
    const eig_number *const p = h + last * n + last, *const q = h + first * n + first;
    eig_number t = p[0], u, x, y;
    double most;
    if (step % 20 == 0)
        return eig_of(t.re + 0.75 * fabs(p[-1].re), t.im);
    if (step % 10 == 0)
        return eig_of(q[0].re + 0.75 * fabs(q[n].re), q[0].im);
    u = eig_times(eig_root(p[-n]), eig_root(p[-1]));
    if (eig_size(u) == 0)
        return t;
    x = eig_of(0.5 * (p[-n - 1].re - t.re), 0.5 * (p[-n - 1].im - t.im));
    most = fmax(eig_size(u), eig_size(x));
    y = eig_times(eig_of(x.re / most, x.im / most), eig_of(x.re / most, x.im / most));
    u = eig_of(u.re / most, u.im / most);
    y = eig_minus(y, eig_times(eig_of(-u.re, -u.im), u));
    y = eig_root(y);
    x = eig_of(x.re / most, x.im / most);
    if (x.re * y.re + x.im * y.im < 0)
        y = eig_of(-y.re, -y.im);
    u = eig_times(u, eig_over(u, eig_of(x.re + y.re, x.im + y.im)));
    return eig_minus(t, eig_of(u.re * most, u.im * most));
}

/* Multiply row and column i, and its vector, by a number of absolute value 1. */
static void eig_phase(ptrdiff_t n, eig_number *h, eig_number *z, ptrdiff_t i, eig_number by)
{
    for (ptrdiff_t j = i + 1; j < n; ++j)
        h[i * n + j] = eig_times(h[i * n + j], eig_conj(by));
    for (ptrdiff_t j = 0; j < i; ++j)
        h[j * n + i] = eig_times(h[j * n + i], by);
    for (ptrdiff_t j = 0; j < n; ++j)
        z[j * n + i] = eig_times(z[j * n + i], by);
}

static void eig_step_complex(ptrdiff_t n, eig_number *h, eig_number *z, ptrdiff_t first,
    ptrdiff_t last, int step, double eps)
{
    const eig_number t = eig_shift_complex(n, h, first, last, step);
    eig_number v[2], tau, below;
    ptrdiff_t begin = last - 1;
    for (;; --begin) {
        const eig_number *const p = h + begin * n + begin;
        const eig_number x = eig_minus(p[0], t);
        const double size = eig_size(x) + fabs(p[n].re);
        v[0] = eig_of(x.re / size, x.im / size);
        v[1] = eig_of(p[n].re / size, 0);
        if (begin == first || fabs(p[-1].re) * fabs(v[1].re)
            <= eps * (eig_size(v[0]) * (eig_size(p[0]) + eig_size(p[n + 1]))))
            break;
    }
    for (ptrdiff_t k = begin; k < last; ++k) {
        eig_number *const p = h + k * n + k;
        if (k > begin) {
            v[0] = p[-1];
            v[1] = p[n - 1];
        }
        tau = eig_reflect_complex(2, v, 1);
        if (k > begin) {
            p[-1] = v[0];
            p[n - 1] = eig_of(0, 0);
        }
        v[0] = eig_of(1, 0);
        eig_apply_complex(n - k, 2, p, 1, n, v, tau, 1);
        eig_apply_complex((k + 2 < last ? k + 2 : last) + 1, 2, h + k, n, 1, v, tau, 0);
        eig_apply_complex(n, 2, z + k, n, 1, v, tau, 0);
        if (k == begin && begin > first) {
            eig_number by = eig_minus(eig_of(1, 0), tau);
            const double size = hypot(by.re, by.im);
            by = eig_conj(eig_of(by.re / size, by.im / size));
            p[n] = eig_times(p[n], by);
            if (begin + 2 <= last)
                p[2 * n + 1] = eig_times(p[2 * n + 1], eig_conj(by));
            for (ptrdiff_t j = begin; j <= last; ++j)
                if (j != begin + 1)
                    eig_phase(n, h, z, j, by);
        }
    }
    below = h[last * n + last - 1];
    if (below.im != 0) {
        const double size = hypot(below.re, below.im);
        h[last * n + last - 1] = eig_of(size, 0);
        eig_phase(n, h, z, last, eig_of(below.re / size, below.im / size));
    }
}
"""

SCHUR = """/* eig_schur for complex matrices. */
static int eig_schur_complex(ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi, eig_number *h, eig_number *z,
    double eps)
{
    for (ptrdiff_t last = hi - 1, most = hi - lo < 10 ? 300 : 30 * (hi - lo); last >= lo; --last)
        for (int step = 0;;) {
            ptrdiff_t first = last;
            while (first > lo && !eig_nothing_complex(n, h, first, lo, hi, eps))
                --first;
            if (first > lo)
                h[first * n + first - 1] = eig_of(0, 0);
            if (first == last)
                break;
            if (step++ == most)
                return 1;
            eig_step_complex(n, h, z, first, last, step, eps);
        }
    return 0;
}
"""

TEXTS = {
    "eig_reflect_complex": REFLECT,
    "eig_hessenberg_complex": HESSENBERG,
    "eig_step_complex": STEP,
    "eig_schur_complex": SCHUR,
}
"""The functions of a Schur form, in order, after ``NUMBERS``."""
