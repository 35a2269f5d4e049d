"""C for the Schur form of real matrices: reflections, then QR steps with two shifts.

After LAPACK's ``gehd2``, ``lahqr`` and ``lanv2``, like ``operators/linalg/francis_steps.py``, so
eigenvalues come in the same order: J. G. F. Francis, "The QR transformation", 1961 and 1962;
deflation after M. Ahues and F. Tisseur, LAPACK Working Note 122. Everything is computed in double.
"""

from __future__ import annotations

REFLECT = """/* v = beta, then the reflection's vector without its leading 1. Returns tau. */
static double eig_reflect(ptrdiff_t count, double *v, ptrdiff_t step)
{
    double most = 0, sum = 0, beta, first = v[0];
    for (ptrdiff_t i = 1; i < count; ++i)
        most = most >= fabs(v[i * step]) ? most : fabs(v[i * step]);
    if (most == 0)
        return 0;
    most = most >= fabs(first) ? most : fabs(first);
    for (ptrdiff_t i = 0; i < count; ++i)
        sum += v[i * step] / most * (v[i * step] / most);
    beta = first >= 0 ? -most * sqrt(sum) : most * sqrt(sum);
    for (ptrdiff_t i = 1; i < count; ++i)
        v[i * step] /= first - beta;
    v[0] = beta;
    return (beta - first) / beta;
}
"""

HESSENBERG = """static void eig_hessenberg(ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi, double *h,
    double *z, double *v)
{
    for (ptrdiff_t i = 0; i < n * n; ++i)
        z[i] = i / n == i % n;
    for (ptrdiff_t k = lo; k + 2 < hi; ++k) {
        const ptrdiff_t count = hi - k - 1;
        double *const from = h + (k + 1) * n + k;
        const double tau = eig_reflect(count, from, n);
        v[0] = 1;
        for (ptrdiff_t i = 1; i < count; ++i) {
            v[i] = from[i * n];
            from[i * n] = 0;
        }
        for (ptrdiff_t i = 0; i < 2 * n; ++i) {
            double *const row = (i < n ? h + i * n : z + (i - n) * n) + k + 1;
            double sum = 0;
            for (ptrdiff_t j = 0; j < count && (i >= n || i < hi); ++j)
                sum += row[j] * v[j];
            for (ptrdiff_t j = 0; j < count; ++j)
                row[j] -= tau * sum * v[j];
        }
        for (ptrdiff_t j = k + 1; j < n; ++j) {
            double sum = 0;
            for (ptrdiff_t i = 0; i < count; ++i)
                sum += v[i] * h[(k + 1 + i) * n + j];
            for (ptrdiff_t i = 0; i < count; ++i)
                h[(k + 1 + i) * n + j] -= tau * sum * v[i];
        }
    }
}
"""

STANDARD = """static void eig_turn(ptrdiff_t count, double *a, double *b, ptrdiff_t step, double c,
    double s)
{
    for (ptrdiff_t i = 0; i < count; ++i) {
        const double x = a[i * step], y = b[i * step];
        a[i * step] = c * x + s * y;
        b[i * step] = c * y - s * x;
    }
}

/* LAPACK's lanv2: rotate m = [[a, b], [c, d]] to a triangle, or to equal diagonal numbers. */
static void eig_standard(double *m, double eps, double *cosine, double *sine)
{
    const double a = m[0], b = m[1], c = m[2], d = m[3], half = 0.5 * (a - d);
    const double most = fmax(fabs(b), fabs(c)), least = fmin(fabs(b), fabs(c));
    const double product = (b < 0) != (c < 0) ? -least : least, scale = fmax(fabs(half), most);
    double cs = 1, sn = 0, z;
    *cosine = 1;
    *sine = 0;
    if (c == 0 || (b != 0 && a == d && (b < 0) != (c < 0)))
        return;
    if (b == 0) {
        cs = 0;
        sn = 1;
        m[0] = d;
        m[1] = -c;
        m[2] = 0;
        m[3] = a;
    } else if ((z = half / scale * half + most / scale * product) >= 4 * eps) {
        z = half + copysign(sqrt(scale) * sqrt(z), half);
        m[0] = d + z;
        m[1] = b - c;
        m[2] = 0;
        m[3] = d - most / z * product;
        cs = z / hypot(c, z);
        sn = c / hypot(c, z);
    } else {
        const double sigma = b + c, length = hypot(sigma, a - d);
        double aa, bb, cc, dd, middle;
        cs = sqrt(0.5 * (1 + fabs(sigma) / length));
        sn = -(half / (length * cs)) * copysign(1, sigma);
        aa = a * cs + b * sn;
        bb = b * cs - a * sn;
        cc = c * cs + d * sn;
        dd = d * cs - c * sn;
        m[1] = bb * cs + dd * sn;
        m[2] = cc * cs - aa * sn;
        middle = 0.5 * (aa * cs + cc * sn + (dd * cs - bb * sn));
        m[0] = m[3] = middle;
        if (m[2] != 0 && m[1] == 0) {
            m[1] = -m[2];
            m[2] = 0;
            z = cs;
            cs = -sn;
            sn = z;
        } else if (m[2] != 0 && (m[1] < 0) == (m[2] < 0)) {
            const double x = sqrt(fabs(m[1])), y = sqrt(fabs(m[2]));
            const double by = 1 / sqrt(fabs(m[1] + m[2]));
            m[0] = middle + copysign(x * y, m[2]);
            m[3] = middle - copysign(x * y, m[2]);
            m[1] -= m[2];
            m[2] = 0;
            z = cs * x * by - sn * y * by;
            sn = cs * y * by + sn * x * by;
            cs = z;
        }
    }
    *cosine = cs;
    *sine = sn;
}
"""

STEP = """/* Return 1 if h[k][k - 1] is negligible (Ahues and Tisseur). */
static int eig_nothing(ptrdiff_t n, const double *h, ptrdiff_t k, ptrdiff_t lo, ptrdiff_t hi,
    double eps)
{
    const double d = h[k * n + k], u = h[(k - 1) * n + k - 1];
    const double small = 2.2250738585072014e-308 * (double)n / eps;
    const double x = fabs(h[k * n + k - 1]), y = fabs(h[(k - 1) * n + k]);
    double near = fabs(d) + fabs(u), most, least, far;
    if (x <= small)
        return 1;
    if (near == 0)
        near = (k - 2 >= lo ? fabs(h[(k - 1) * n + k - 2]) : 0)
            + (k + 1 < hi ? fabs(h[(k + 1) * n + k]) : 0);
    if (!(x <= eps * near))
        return 0;
    most = fmax(x, y);
    least = fmin(x, y);
    far = fmax(fabs(d), fabs(u - d));
    near = fmin(fabs(d), fabs(u - d));
    return least * (most / (far + most)) <= fmax(small, eps * (near * (far / (far + most))));
}

static void eig_shifts(ptrdiff_t n, const double *h, ptrdiff_t first, ptrdiff_t last, int step,
    double *re, double *im)
{
    const double *const p = h + last * n + last, *const q = h + first * n + first;
    double a = p[-n - 1], b = p[-n], c = p[-1], d = p[0], size;
    if (step % 10 == 0) {
        const int below = step % 20 == 0;
        c = below ? fabs(p[-1]) + fabs(p[-n - 2]) : fabs(q[n]) + fabs(q[2 * n + 1]);
        a = d = 0.75 * c + (below ? p[0] : q[0]);
        b = -0.4375 * c;
    }
    *re = *im = 0;
    size = fabs(a) + fabs(b) + fabs(c) + fabs(d);
    if (size > 0) {
        double middle, minor, root;
        a /= size;
        b /= size;
        c /= size;
        d /= size;
        middle = (a + d) / 2;
        minor = (a - middle) * (d - middle) - b * c;
        root = sqrt(fabs(minor));
        *im = minor >= 0 ? root * size : 0;
        *re = minor >= 0 ? middle
            : fabs(middle + root - d) <= fabs(middle - root - d) ? middle + root : middle - root;
        *re *= size;
    }
}

/* Return the row at which a step begins, and set the vector that is reflected there. */
static ptrdiff_t eig_start(ptrdiff_t n, const double *h, ptrdiff_t first, ptrdiff_t last, double x,
    double y, double eps, double *v)
{
    for (ptrdiff_t m = last - 2;; --m) {
        const double *const p = h + m * n + m;
        double size = fabs(p[0] - x) + fabs(y) + fabs(p[n]);
        const double below = p[n] / size;
        v[0] = below * p[1] + (p[0] - x) * ((p[0] - x) / size) + y * (y / size);
        v[1] = below * (p[0] + p[n + 1] - x - x);
        v[2] = below * p[2 * n + 1];
        size = fabs(v[0]) + fabs(v[1]) + fabs(v[2]);
        for (int i = 0; i < 3; ++i)
            v[i] /= size;
        if (m == first || fabs(p[-1]) * (fabs(v[1]) + fabs(v[2]))
            <= eps * fabs(v[0]) * (fabs(p[-n - 1]) + fabs(p[0]) + fabs(p[n + 1])))
            return m;
    }
}

static void eig_apply(ptrdiff_t count, double *a, ptrdiff_t step, ptrdiff_t next, const double *v,
    double tau, ptrdiff_t size)
{
    /* Apply the reflection to three or two numbers, next apart, of each row or column. */
    const double x = tau * v[1], y = size == 3 ? tau * v[2] : 0;
    for (ptrdiff_t i = 0; i < count; ++i) {
        double *const p = a + i * step;
        const double sum = p[0] + v[1] * p[next] + (size == 3 ? v[2] * p[2 * next] : 0);
        p[0] -= sum * tau;
        p[next] -= sum * x;
        if (size == 3)
            p[2 * next] -= sum * y;
    }
}

static void eig_step(ptrdiff_t n, double *h, double *z, ptrdiff_t first, ptrdiff_t last, int step,
    double eps)
{
    double x, y, v[3], tau;
    ptrdiff_t begin;
    eig_shifts(n, h, first, last, step, &x, &y);
    begin = eig_start(n, h, first, last, x, y, eps, v);
    for (ptrdiff_t k = begin; k < last; ++k) {
        const ptrdiff_t size = last - k + 1 < 3 ? last - k + 1 : 3;
        double *const p = h + k * n + k;
        for (ptrdiff_t i = 0; i < size && k > begin; ++i)
            v[i] = p[i * n - 1];
        tau = eig_reflect(size, v, 1);
        if (k > begin)
            for (ptrdiff_t i = 0; i < size; ++i)
                p[i * n - 1] = i ? 0 : v[0];
        else if (begin > first)
            p[-1] *= 1 - tau;
        eig_apply(n - k, p, 1, n, v, tau, size);
        eig_apply((k + 3 < last ? k + 3 : last) + 1, h + k, n, 1, v, tau, size);
        eig_apply(n, z + k, n, 1, v, tau, size);
    }
}
"""

SCHUR = """/* h = Schur form of rows lo to hi, z = its vectors. Returns 1 without convergence. */
static int eig_schur(ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi, double *h, double *z, double eps)
{
    for (ptrdiff_t last = hi - 1, most = hi - lo < 10 ? 300 : 30 * (hi - lo); last >= lo;) {
        ptrdiff_t first = lo;
        int step = 0;
        for (;;) {
            for (first = last; first > lo && !eig_nothing(n, h, first, lo, hi, eps);)
                --first;
            if (first > lo)
                h[first * n + first - 1] = 0;
            if (first >= last - 1)
                break;
            if (step++ == most)
                return 1;
            eig_step(n, h, z, first, last, step, eps);
        }
        if (first == last - 1) {
            double *const p = h + first * n + first, m[4] = {p[0], p[1], p[n], p[n + 1]}, c, s;
            eig_standard(m, eps, &c, &s);
            eig_turn(n - first - 2, p + 2, p + n + 2, 1, c, s);
            eig_turn(first, h + first, h + last, n, c, s);
            eig_turn(n, z + first, z + last, n, c, s);
            p[0] = m[0];
            p[1] = m[1];
            p[n] = m[2];
            p[n + 1] = m[3];
        }
        last = first - 1;
    }
    return 0;
}
"""

TEXTS = {
    "eig_reflect": REFLECT,
    "eig_hessenberg": HESSENBERG,
    "eig_standard": STANDARD,
    "eig_step": STEP,
    "eig_schur": SCHUR,
}
"""The functions of a Schur form, in order."""
