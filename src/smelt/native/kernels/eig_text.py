"""C for eigenvalues of general matrices: Schur's form by shifted QR steps on complex numbers.

The matrix is brought to Hessenberg's form by reflections; steps with Wilkinson's shift then clear
what is below the diagonal, number by number (Golub and Van Loan, Matrix Computations, chapter 7).
Of a real matrix, eigenvalues that are their own nearest conjugate are real; the others are made
exact pairs. All of it is computed in double.
"""

from __future__ import annotations

NUMBERS = """typedef struct {
    double re, im;
} eig_number;

static eig_number eig_times(eig_number a, eig_number b)
{
    const eig_number y = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    return y;
}

static eig_number eig_over(eig_number a, eig_number b)
{
    const int wide = fabs(b.re) >= fabs(b.im);
    const double ratio = wide ? b.im / b.re : b.re / b.im;
    const double by = wide ? b.re + b.im * ratio : b.re * ratio + b.im;
    eig_number y;
    y.re = (wide ? a.re + a.im * ratio : a.re * ratio + a.im) / by;
    y.im = (wide ? a.im - a.re * ratio : a.im * ratio - a.re) / by;
    return y;
}

static eig_number eig_root(eig_number a)
{
    const double size = hypot(a.re, a.im), part = sqrt(0.5 * (size + fabs(a.re)));
    const double other = part > 0 ? 0.5 * a.im / part : 0;
    eig_number y = {part, other};
    if (a.re < 0) {
        y.re = fabs(other);
        y.im = a.im < 0 ? -part : part;
    }
    return y;
}

static double eig_size(eig_number a)
{
    return fabs(a.re) + fabs(a.im);
}

static void eig_mix(eig_number *a, eig_number *b, eig_number c, eig_number s)
{
    /* (a c + b s, b conj(c) - a conj(s)) */
    const eig_number x = *a, y = *b;
    a->re = x.re * c.re - x.im * c.im + y.re * s.re - y.im * s.im;
    a->im = x.re * c.im + x.im * c.re + y.re * s.im + y.im * s.re;
    b->re = y.re * c.re + y.im * c.im - x.re * s.re - x.im * s.im;
    b->im = y.im * c.re - y.re * c.im - x.im * s.re + x.re * s.im;
}
"""

HESSENBERG = """static void eig_hessenberg(ptrdiff_t n, eig_number *h, eig_number *z,
    eig_number *v)
{
    for (ptrdiff_t i = 0; i < n * n; ++i) {
        z[i].re = i / n == i % n;
        z[i].im = 0;
    }
    for (ptrdiff_t k = 0; k + 2 < n; ++k) {
        double most = 0, norm = 0, by = 0;
        for (ptrdiff_t i = k + 1; i < n; ++i)
            most = most >= fabs(h[i * n + k].re) ? most : fabs(h[i * n + k].re);
        if (most == 0)
            continue;
        for (ptrdiff_t i = k + 1; i < n; ++i) {
            v[i].re = h[i * n + k].re / most;
            norm += v[i].re * v[i].re;
        }
        norm = sqrt(norm);
        v[k + 1].re += v[k + 1].re < 0 ? -norm : norm;
        for (ptrdiff_t i = k + 1; i < n; ++i)
            by += v[i].re * v[i].re;
        by = 2 / by;
        for (ptrdiff_t j = 0; j < n; ++j) {
            double s = 0;
            for (ptrdiff_t i = k + 1; i < n; ++i)
                s += v[i].re * h[i * n + j].re;
            for (ptrdiff_t i = k + 1; i < n; ++i)
                h[i * n + j].re -= by * s * v[i].re;
        }
        for (ptrdiff_t i = 0; i < n; ++i) {
            double s = 0, t = 0;
            for (ptrdiff_t j = k + 1; j < n; ++j) {
                s += h[i * n + j].re * v[j].re;
                t += z[i * n + j].re * v[j].re;
            }
            for (ptrdiff_t j = k + 1; j < n; ++j) {
                h[i * n + j].re -= by * s * v[j].re;
                z[i * n + j].re -= by * t * v[j].re;
            }
        }
        for (ptrdiff_t i = k + 2; i < n; ++i)
            h[i * n + k].re = 0;
    }
}
"""

STEP = """static eig_number eig_shift(ptrdiff_t n, const eig_number *h, ptrdiff_t top, int step)
{
    const eig_number a = h[(top - 1) * n + top - 1], d = h[top * n + top];
    const eig_number q = eig_times(h[(top - 1) * n + top], h[top * n + top - 1]);
    eig_number p = {0.5 * (a.re - d.re), 0.5 * (a.im - d.im)}, y = d, root;
    if (step % 10 == 0) {
        /* Steps that do not end are thrown off their cycle. */
        y.re += eig_size(h[top * n + top - 1]);
        return y;
    }
    root = eig_times(p, p);
    root.re += q.re;
    root.im += q.im;
    root = eig_root(root);
    if (p.re * root.re + p.im * root.im < 0) {
        root.re = -root.re;
        root.im = -root.im;
    }
    p.re += root.re;
    p.im += root.im;
    if (eig_size(p) > 0) {
        const eig_number by = eig_over(q, p);
        y.re -= by.re;
        y.im -= by.im;
    }
    return y;
}

static void eig_step(ptrdiff_t n, eig_number *h, eig_number *z, ptrdiff_t low, ptrdiff_t top,
    eig_number shift)
{
    eig_number x = h[low * n + low], y = h[(low + 1) * n + low];
    x.re -= shift.re;
    x.im -= shift.im;
    for (ptrdiff_t k = low; k < top; ++k) {
        const double norm = hypot(hypot(x.re, x.im), hypot(y.re, y.im));
        eig_number c = {1, 0}, s = {0, 0}, c_rows, s_rows;
        if (norm > 0) {
            c.re = x.re / norm;
            c.im = x.im / norm;
            s.re = y.re / norm;
            s.im = y.im / norm;
        }
        c_rows.re = c.re;
        c_rows.im = -c.im;
        s_rows.re = s.re;
        s_rows.im = -s.im;
        for (ptrdiff_t j = k > low ? k - 1 : low; j < n; ++j)
            eig_mix(&h[k * n + j], &h[(k + 1) * n + j], c_rows, s_rows);
        for (ptrdiff_t i = 0; i <= (k + 2 < top ? k + 2 : top); ++i)
            eig_mix(&h[i * n + k], &h[i * n + k + 1], c, s);
        for (ptrdiff_t i = 0; i < n; ++i)
            eig_mix(&z[i * n + k], &z[i * n + k + 1], c, s);
        if (k + 1 < top) {
            x = h[(k + 1) * n + k];
            y = h[(k + 2) * n + k];
        }
    }
}
"""

SCHUR = """static int eig_schur(ptrdiff_t n, eig_number *h, eig_number *z)
{
    const double eps = 2.2204460492503131e-16;
    double norm = 0;
    for (ptrdiff_t i = 0; i < n * n; ++i)
        norm = norm >= eig_size(h[i]) ? norm : eig_size(h[i]);
    for (ptrdiff_t top = n - 1, step = 1; top > 0;) {
        ptrdiff_t low = top;
        for (; low > 0; --low) {
            double near = eig_size(h[(low - 1) * n + low - 1]) + eig_size(h[low * n + low]);
            near = near > 0 ? near : norm;
            if (eig_size(h[low * n + low - 1]) <= eps * near)
                break;
        }
        if (low > 0) {
            h[low * n + low - 1].re = 0;
            h[low * n + low - 1].im = 0;
        }
        if (low == top) {
            --top;
            step = 1;
            continue;
        }
        if (step == 60)
            return 1;
        eig_step(n, h, z, low, top, eig_shift(n, h, top, (int)step));
        ++step;
    }
    return 0;
}
"""

PAIRS = """static void eig_pairs(ptrdiff_t n, const eig_number *h, int *sign)
{
    /* 0: real; 1 and -1: a pair of conjugates; 2: not known yet. */
    for (ptrdiff_t i = 0; i < n; ++i)
        sign[i] = 2;
    for (ptrdiff_t left = n; left > 0;) {
        ptrdiff_t first = -1, mate = -1;
        double gap;
        for (ptrdiff_t i = 0; i < n; ++i)
            if (sign[i] == 2
                && (first < 0 || fabs(h[i * n + i].im) > fabs(h[first * n + first].im)))
                first = i;
        gap = 2 * fabs(h[first * n + first].im);
        for (ptrdiff_t i = 0; i < n; ++i) {
            const double re = h[i * n + i].re - h[first * n + first].re;
            const double size = hypot(re, h[i * n + i].im + h[first * n + first].im);
            if (sign[i] == 2 && i != first && size < gap) {
                gap = size;
                mate = i;
            }
        }
        sign[first] = mate < 0 ? 0 : 1;
        if (mate >= 0)
            sign[mate] = -1;
        left -= mate < 0 ? 1 : 2;
    }
}
"""

VECTOR = """static void eig_vector(ptrdiff_t n, const eig_number *h, const eig_number *z,
    ptrdiff_t k, int left, int real, eig_number *x, eig_number *v)
{
    const eig_number zero = {0, 0};
    double least = 1e-300, most = 0, norm = 0;
    eig_number turn;
    for (ptrdiff_t i = 0; i < n * n; ++i)
        least = least >= 2.2e-16 * eig_size(h[i]) ? least : 2.2e-16 * eig_size(h[i]);
    for (ptrdiff_t i = 0; i < n; ++i)
        x[i] = zero;
    x[k].re = 1;
    for (ptrdiff_t r = 1; left ? k + r < n : r <= k; ++r) {
        const ptrdiff_t i = left ? k + r : k - r;
        eig_number sum = zero, by = h[k * n + k];
        by.re -= h[i * n + i].re;
        by.im = left ? h[i * n + i].im - by.im : by.im - h[i * n + i].im;
        for (ptrdiff_t j = left ? k : i + 1; j < (left ? i : k + 1); ++j) {
            eig_number a = left ? h[j * n + i] : h[i * n + j];
            a.im = left ? -a.im : a.im;
            a = eig_times(a, x[j]);
            sum.re += a.re;
            sum.im += a.im;
        }
        if (eig_size(by) < least) {
            by.re = least;
            by.im = 0;
        }
        x[i] = eig_over(sum, by);
        if (eig_size(x[i]) > 1e100)
            for (ptrdiff_t j = 0; j < n; ++j) {
                x[j].re *= 1e-100;
                x[j].im *= 1e-100;
            }
    }
    turn = x[k];
    for (ptrdiff_t i = 0; i < n; ++i) {
        v[i] = zero;
        for (ptrdiff_t j = 0; j < n; ++j) {
            const eig_number a = eig_times(z[i * n + j], x[j]);
            v[i].re += a.re;
            v[i].im += a.im;
        }
        if (eig_size(v[i]) > most) {
            most = eig_size(v[i]);
            turn = v[i];
        }
    }
    /* The largest number is real, as LAPACK makes it; vectors of real ones are so. */
    for (ptrdiff_t i = 0; i < n; ++i) {
        v[i] = eig_over(v[i], turn);
        v[i].im = real ? 0 : v[i].im;
        norm += v[i].re * v[i].re + v[i].im * v[i].im;
    }
    norm = sqrt(norm);
    for (ptrdiff_t i = 0; i < n; ++i) {
        v[i].re /= norm;
        v[i].im /= norm;
    }
}
"""

TEXTS = {
    "eig_number": NUMBERS,
    "eig_hessenberg": HESSENBERG,
    "eig_step": STEP,
    "eig_schur": SCHUR,
    "eig_pairs": PAIRS,
    "eig_vector": VECTOR,
}
"""What ``eig`` calls, in order."""
