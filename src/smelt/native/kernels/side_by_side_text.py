"""C that computes with vectors of matrices: ``a[i * r + j * c]`` has element (i, j) of each.

``@t`` is the element type, ``@l`` how many matrices a vector of 64 bytes has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smelt.native.kernels.side_by_side_diagonals import BIDIAGONAL, TRIDIAGONAL

BYTES = 64
"""Of a vector, whatever the CPU has: a compiler makes two of it where need be."""


def lanes_of(type_: str) -> int:
    """How many elements a vector has."""
    return BYTES // {"float": 4, "double": 8}[type_]


LANES = f"""typedef @t lanes_@t
    __attribute__((vector_size({BYTES}), aligned(sizeof(@t)), may_alias));
"""

TOGETHER = """static void together_@t(const @t *restrict x, lanes_@t *restrict a, ptrdiff_t n)
{
    @t *const to = (@t *)a;
    for (ptrdiff_t first = 0; first < n; first += @l) {
        const ptrdiff_t end = first + @l < n ? first + @l : n;
        for (ptrdiff_t l = 0; l < @l; ++l)
            for (ptrdiff_t e = first; e < end; ++e)
                to[e * @l + l] = x[l * n + e];
    }
}
"""

APART = """static void apart_@t(const lanes_@t *restrict a, @t *restrict x, ptrdiff_t n)
{
    const @t *const from = (const @t *)a;
    for (ptrdiff_t first = 0; first < n; first += @l) {
        const ptrdiff_t end = first + @l < n ? first + @l : n;
        for (ptrdiff_t l = 0; l < @l; ++l)
            for (ptrdiff_t e = first; e < end; ++e)
                x[l * n + e] = from[e * @l + l];
    }
}
"""

CHOLESKY = """static void cholesky_@t(lanes_@t *restrict a, ptrdiff_t n, ptrdiff_t r, ptrdiff_t c)
{
    lanes_@t failed = {0};
    for (ptrdiff_t j = 0; j < n; ++j) {
        @t *const pivot = (@t *)&a[j * (r + c)], *const wrong = (@t *)&failed;
        for (ptrdiff_t l = 0; l < @l; ++l) {
            wrong[l] = pivot[l] > 0 ? wrong[l] : (@t)NAN;
            pivot[l] = (@t)__builtin_sqrt((double)pivot[l]);
        }
        const lanes_@t root = a[j * (r + c)];
        for (ptrdiff_t i = j + 1; i < n; ++i)
            a[i * r + j * c] /= root;
        for (ptrdiff_t i = j + 1; i < n; ++i) {
            const lanes_@t share = a[i * r + j * c];
            for (ptrdiff_t k = j + 1; k <= i; ++k)
                a[i * r + k * c] -= share * a[k * r + j * c];
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j <= i; ++j)
            a[i * r + j * c] += failed;
        for (ptrdiff_t j = i + 1; j < n; ++j)
            a[i * r + j * c] = (lanes_@t){0};
    }
}
"""

LU = """static void lu_@t(lanes_@t *restrict a, int32_t *restrict pivots, int32_t *restrict order,
    ptrdiff_t m, ptrdiff_t n)
{
    const ptrdiff_t count = m < n ? m : n;
    @t *const at = (@t *)a;
    for (ptrdiff_t l = 0; l < @l; ++l)
        for (ptrdiff_t i = 0; i < m; ++i)
            order[l * m + i] = (int32_t)i;
    for (ptrdiff_t k = 0; k < count; ++k) {
        @t best[@l];
        int32_t place[@l];
        for (ptrdiff_t l = 0; l < @l; ++l) {
            best[l] = (@t)__builtin_fabs(at[(k * n + k) * @l + l]);
            place[l] = (int32_t)k;
        }
        for (ptrdiff_t i = k + 1; i < m; ++i)
            for (ptrdiff_t l = 0; l < @l; ++l) {
                const @t size = (@t)__builtin_fabs(at[(i * n + k) * @l + l]);
                place[l] = size > best[l] ? (int32_t)i : place[l];
                best[l] = size > best[l] ? size : best[l];
            }
        for (ptrdiff_t l = 0; l < @l; ++l) {
            const ptrdiff_t p = place[l];
            pivots[l * count + k] = (int32_t)p;
            if (p == k)
                continue;
            for (ptrdiff_t j = 0; j < n; ++j) {
                const @t v = at[(k * n + j) * @l + l];
                at[(k * n + j) * @l + l] = at[(p * n + j) * @l + l];
                at[(p * n + j) * @l + l] = v;
            }
            const int32_t row = order[l * m + k];
            order[l * m + k] = order[l * m + p];
            order[l * m + p] = row;
        }
        lanes_@t pivot = a[k * n + k];
        for (ptrdiff_t l = 0; l < @l; ++l)
            ((@t *)&pivot)[l] = ((@t *)&pivot)[l] == 0 ? 1 : ((@t *)&pivot)[l];
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            const lanes_@t share = a[i * n + k] /= pivot;
            for (ptrdiff_t j = k + 1; j < n; ++j)
                a[i * n + j] -= share * a[k * n + j];
        }
    }
}
"""

SUBSTITUTE = """static void substitute_@t(const lanes_@t *restrict a, lanes_@t *restrict x,
    ptrdiff_t n, ptrdiff_t columns, ptrdiff_t ar, ptrdiff_t ac, ptrdiff_t xr, ptrdiff_t xc,
    int lower, int unit)
{
    for (ptrdiff_t r = 0; r < n; ++r) {
        const ptrdiff_t i = lower ? r : n - 1 - r;
        for (ptrdiff_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) {
            const lanes_@t share = a[i * ar + k * ac];
            for (ptrdiff_t j = 0; j < columns; ++j)
                x[i * xr + j * xc] -= share * x[k * xr + j * xc];
        }
        const lanes_@t pivot = a[i * (ar + ac)];
        for (ptrdiff_t j = 0; j < (unit ? 0 : columns); ++j)
            x[i * xr + j * xc] /= pivot;
    }
}
"""

REFLECTION = """static void careful_@t(@t *restrict a, ptrdiff_t rows, ptrdiff_t step,
    @t *restrict tau)
{
    @t most = 0, rest = 0, total = 0;
    for (ptrdiff_t i = 1; i < rows; ++i)
        rest = rest >= __builtin_fabs(a[i * step]) ? rest : (@t)__builtin_fabs(a[i * step]);
    *tau = 0;
    if (rest == 0)
        return;
    most = rest >= __builtin_fabs(a[0]) ? rest : (@t)__builtin_fabs(a[0]);
    for (ptrdiff_t i = 0; i < rows; ++i)
        total += (a[i * step] / most) * (a[i * step] / most);
    const @t alpha = a[0] / most, norm = (@t)__builtin_sqrt((double)total);
    const @t beta = alpha < 0 ? norm : -norm;
    *tau = (beta - alpha) / beta;
    for (ptrdiff_t i = 1; i < rows; ++i)
        a[i * step] = a[i * step] / most / (alpha - beta);
    a[0] = beta * most;
}

static void reflection_@t(lanes_@t *restrict a, ptrdiff_t rows, ptrdiff_t step,
    @t *restrict tau)
{
    const @t least = sizeof(@t) == 4 ? (@t)1e-28 : (@t)1e-290;
    const @t highest = sizeof(@t) == 4 ? (@t)1e37 : (@t)1e305;
    lanes_@t rest = {0}, scale, beta;
    for (ptrdiff_t i = 1; i < rows; ++i)
        rest += a[i * step] * a[i * step];
    int odd = 0;
    for (ptrdiff_t l = 0; l < @l; ++l) {
        const @t alpha = ((@t *)a)[l], r = ((@t *)&rest)[l], all = alpha * alpha + r;
        const @t norm = (@t)__builtin_sqrt((double)all), b = alpha < 0 ? norm : -norm;
        odd |= !(r >= least) | !(all <= highest);
        ((@t *)&beta)[l] = b;
        ((@t *)&scale)[l] = 1 / (alpha - b);
        tau[l] = (b - alpha) / b;
    }
    if (!odd) {
        a[0] = beta;
        for (ptrdiff_t i = 1; i < rows; ++i)
            a[i * step] *= scale;
        return;
    }
    for (ptrdiff_t l = 0; l < @l; ++l)
        careful_@t((@t *)a + l, rows, step * @l, tau + l);
}
"""

REFLECT = """static void reflect_@t(const lanes_@t *restrict v, ptrdiff_t step,
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

REFLECTIONS = """static void reflections_@t(lanes_@t *restrict a, @t *restrict taus,
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

MULTIPLY = """static void multiply_@t(const lanes_@t *restrict a, const @t *restrict taus,
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

_ALL: Sequence[tuple[str, str]] = (
    ("lanes", LANES),
    ("together", TOGETHER),
    ("apart", APART),
    ("cholesky", CHOLESKY),
    ("lu", LU),
    ("substitute", SUBSTITUTE),
    ("reflection", REFLECTION),
    ("reflect", REFLECT),
    ("reflections", REFLECTIONS),
    ("multiply", MULTIPLY),
    ("tridiagonal", TRIDIAGONAL),
    ("bidiagonal", BIDIAGONAL),
)
_NEEDED = {
    "reflections": ("reflection", "reflect"),
    "multiply": ("reflect",),
    "tridiagonal": ("reflection",),
    "bidiagonal": ("reflection", "reflect"),
}

TEXTS: Mapping[str, Sequence[tuple[str, str]]] = {
    name: [
        (f"{each}_@t", text)
        for each, text in _ALL
        if each in ("lanes", name, *_NEEDED.get(name, ()))
    ]
    for name, _ in _ALL
}
"""A function, after what it calls, by name."""
