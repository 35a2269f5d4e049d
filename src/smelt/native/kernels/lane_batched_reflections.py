"""C of lane-batched QR factors, as Householder reflections.

Placeholders are those of ``lane_batched_text.OF_TYPE``. A lane whose squares overflow or underflow
is computed again with scaling, as in LAPACK; other lanes are not.
"""

from __future__ import annotations

REFLECTION = """/* One lane of reflection, with scaling. */
static void careful_@t(@t *restrict a, ptrdiff_t rows, ptrdiff_t step,
    @t *restrict tau)
{
    @t most = 0, rest = 0, total = 0;
    for (ptrdiff_t i = 1; i < rows; ++i)
        rest = rest >= __builtin_fabs@s(a[i * step]) ? rest : __builtin_fabs@s(a[i * step]);
    *tau = 0;
    if (rest == 0)
        return;
    most = rest >= __builtin_fabs@s(a[0]) ? rest : __builtin_fabs@s(a[0]);
    for (ptrdiff_t i = 0; i < rows; ++i)
        total += (a[i * step] / most) * (a[i * step] / most);
    const @t alpha = a[0] / most, norm = __builtin_sqrt@s(total);
    const @t beta = alpha < 0 ? norm : -norm;
    *tau = (beta - alpha) / beta;
    for (ptrdiff_t i = 1; i < rows; ++i)
        a[i * step] = a[i * step] / most / (alpha - beta);
    a[0] = beta * most;
}

/* Replace the vector a, with stride step, by beta and v: I - tau v v^T maps it to (beta, 0...). */
static void reflection_@t(lanes_@t *restrict a, ptrdiff_t rows, ptrdiff_t step,
    @t *restrict tau)
{
    const @t least = sizeof(@t) == 4 ? (@t)1e-28 : (@t)1e-290;
    const @t highest = sizeof(@t) == 4 ? (@t)1e37 : (@t)1e305;
    lanes_@t rest = {0}, scale, beta;
    for (ptrdiff_t i = 1; i < rows; ++i)
        rest += a[i * step] * a[i * step];
    @t odd[@l], some = 0;
    for (ptrdiff_t l = 0; l < @l; ++l) {
        const @t alpha = ((@t *)a)[l], r = ((@t *)&rest)[l], all = alpha * alpha + r;
        const @t norm = __builtin_sqrt@s(all), b = alpha < 0 ? norm : -norm;
        odd[l] = !(r >= least) | !(all <= highest);
        some += odd[l];
        ((@t *)&beta)[l] = odd[l] ? alpha : b;
        ((@t *)&scale)[l] = odd[l] ? 1 : 1 / (alpha - b);
        tau[l] = (b - alpha) / b;
    }
    a[0] = beta;
    for (ptrdiff_t i = 1; i < rows; ++i)
        a[i * step] *= scale;
    /* Only such lanes are scaled, so a matrix's result does not depend on other lanes. */
    for (ptrdiff_t l = 0; l < (some != 0 ? @l : 0); ++l)
        if (odd[l])
            careful_@t((@t *)a + l, rows, step * @l, tau + l);
}
"""

REFLECT = """/* a = (I - tau v v^T) a, where v[0] counts as 1; w has room for a row. */
static void reflect_@t(const lanes_@t *restrict v, ptrdiff_t step,
    const @t *restrict tau, lanes_@t *restrict a, ptrdiff_t n, lanes_@t *restrict w,
    ptrdiff_t rows, ptrdiff_t columns)
{
    lanes_@t by;
    for (ptrdiff_t l = 0; l < @l; ++l)
        ((@t *)&by)[l] = tau[l];
    for (ptrdiff_t j = 0; j < columns; ++j)
        w[j] = a[j];
    for (ptrdiff_t i = 1; i < rows; ++i) {
        const lanes_@t share = v[i * step];
        for (ptrdiff_t j = 0; j < columns; ++j)
            w[j] += share * a[i * n + j];
    }
    for (ptrdiff_t j = 0; j < columns; ++j)
        a[j] -= w[j] *= by;
    for (ptrdiff_t i = 1; i < rows; ++i) {
        const lanes_@t share = v[i * step];
        for (ptrdiff_t j = 0; j < columns; ++j)
            a[i * n + j] -= share * w[j];
    }
}
"""

REFLECTIONS = """/* QR: R in the upper triangle of a, reflection vectors below, scales in taus. */
static void reflections_@t(lanes_@t *restrict a, @t *restrict taus,
    lanes_@t *restrict w, ptrdiff_t m, ptrdiff_t n)
{
    const ptrdiff_t count = m < n ? m : n;
    for (ptrdiff_t k = 0; k < count; ++k) {
        lanes_@t *const from = a + k * n + k;
        @t tau[@l];
        reflection_@t(from, m - k, n, tau);
        for (ptrdiff_t l = 0; l < @l; ++l)
            taus[l * count + k] = tau[l];
        reflect_@t(from, n, tau, from + 1, n, w, m - k, n - 1 - k);
    }
}
"""

MULTIPLY = """/* q = product of the first count reflections of a. */
static void multiply_@t(const lanes_@t *restrict a, const @t *restrict taus,
    lanes_@t *restrict q, lanes_@t *restrict w, ptrdiff_t m, ptrdiff_t n, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < m; ++i)
        for (ptrdiff_t j = 0; j < n; ++j)
            q[i * n + j] = (lanes_@t){0} + (@t)(i == j);
    for (ptrdiff_t k = count - 1; k >= 0; --k) {
        @t tau[@l];
        for (ptrdiff_t l = 0; l < @l; ++l)
            tau[l] = taus[l * count + k];
        reflect_@t(a + k * n + k, n, tau, q + k * n + k, n, w, m - k, n - k);
    }
}
"""

REFLECTIONS_TO = """/* As reflections, for m >= n; taus of all lanes are contiguous. */
static void reflections_to_@t(lanes_@t *restrict a, @t *restrict taus, lanes_@t *restrict w,
    ptrdiff_t m, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; ++k) {
        lanes_@t *const from = a + k * n + k;
        reflection_@t(from, m - k, n, taus + k * @l);
        reflect_@t(from, n, taus + k * @l, from + 1, n, w, m - k, n - 1 - k);
    }
}
"""
