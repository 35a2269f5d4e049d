"""QR of small complex matrices, given by their parts, one matrix at a time.

Compilers vectorize the loops along rows. The overhead of LAPACK's ``geqrf`` and ``ungqr`` would
take as long as the computation. The reflections are those of ``larfg``, so signs match.
"""

from __future__ import annotations

import math

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lapack import DOMAIN
from smelt.native.types import CType
from smelt.program.storage import Needs

NAME = f"{DOMAIN}.small::ComplexQR"
MOST = 32
"""The most rows and columns; for larger matrices, blocked products are faster."""

TEXT = """static void complex_qr_@t_@mx@n_@inner(@t *restrict re, @t *restrict im,
    @t *restrict x, @t *restrict y, @t *restrict room)
{
    const ptrdiff_t m = @m, n = @n, inner = @inner;
    const ptrdiff_t count = m < n ? m : n;
    @t *const restrict taus = room, *const restrict vectors = taus + 2 * @most;
    for (ptrdiff_t k = 0; k < count; ++k) {
        @t *const restrict v = vectors + 2 * k * @most, *const restrict w = v + @most;
        @t scale = 0, below = 0;
        for (ptrdiff_t i = k; i < m; ++i) {
            const @t p = fabs@f(re[i * n + k]), q = fabs@f(im[i * n + k]);
            scale = p > scale ? p : scale;
            scale = q > scale ? q : scale;
        }
        scale = scale > 0 ? scale : 1;
        for (ptrdiff_t i = k; i < m; ++i) {
            v[i] = re[i * n + k] / scale;
            w[i] = im[i * n + k] / scale;
            below += i > k ? v[i] * v[i] + w[i] * w[i] : 0;
        }
        const @t norm = sqrt@f(below + v[k] * v[k] + w[k] * w[k]), beta = v[k] < 0 ? norm : -norm;
        const int still = below == 0 && w[k] == 0;
        const @t a = still ? 0 : (beta - v[k]) / beta, b = still ? 0 : -w[k] / beta;
        const @t p = still ? 1 : v[k] - beta, q = still ? 0 : w[k], length = p * p + q * q;
        taus[2 * k] = a, taus[2 * k + 1] = b;
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            const @t u = v[i];
            v[i] = (u * p + w[i] * q) / length;
            w[i] = (w[i] * p - u * q) / length;
        }
        v[k] = 1, w[k] = 0;
        reflect_@t_@n(m, k, a, -b, v, w, re, im);
        if (!still)
            re[k * n + k] = beta * scale;
    }
    for (ptrdiff_t i = 0; i < m * inner; ++i)
        x[i] = i / inner == i % inner, y[i] = 0;
    for (ptrdiff_t k = count - 1; k >= 0; --k) {
        const @t *const v = vectors + 2 * k * @most;
        const @t a = taus[2 * k], b = taus[2 * k + 1];
        reflect_@t_@inner(m, k, a, b, v, v + @most, x, y);
    }
}
"""
"""C that replaces the triangle of ``re`` and ``im`` (``m`` x ``n``) by that of R, and writes Q
(``m`` x ``inner``) to ``x`` and ``y``."""

REFLECT = """static void reflect_@t_@n(ptrdiff_t m, ptrdiff_t k, @t a, @t b,
    const @t *restrict v, const @t *restrict w, @t *restrict re, @t *restrict im)
{
    const ptrdiff_t n = @n;
    @t along[@n], across[@n];
    for (ptrdiff_t j = 0; j < n; ++j)
        along[j] = across[j] = 0;
    for (ptrdiff_t i = k; i < m; ++i)
        for (ptrdiff_t j = 0; j < n; ++j) {
            along[j] += v[i] * re[i * n + j] + w[i] * im[i * n + j];
            across[j] += v[i] * im[i * n + j] - w[i] * re[i * n + j];
        }
    for (ptrdiff_t i = k; i < m; ++i) {
        const @t p = a * v[i] - b * w[i], q = a * w[i] + b * v[i];
        for (ptrdiff_t j = 0; j < n; ++j) {
            re[i * n + j] -= p * along[j] - q * across[j];
            im[i * n + j] -= p * across[j] + q * along[j];
        }
    }
}
"""
"""C that multiplies rows from ``k`` on, of length ``n``, by
``1 - (a + b i) (v + w i) (v + w i)^H``."""


def supports(instance: Instance) -> bool:
    """True if this file's kernels support the instruction: small nonempty matrices in two equal
    parts.
    """
    shape, other = instance.shape(0), instance.shape(1)
    types = {instance.type(part).name for part in range(2)}
    return types <= {"float", "double"} and len(types) == 1 and shape == other and _is_small(shape)


def _is_small(shape: tuple[int, ...]) -> bool:
    """True if a matrix is not empty and has at most ``MOST`` rows and columns."""
    return 0 not in shape and max(shape[-2:]) <= MOST


def _needs(instance: Instance) -> Needs:
    """Return the scratch space: both parts of a matrix, and the reflections."""
    rows, columns = instance.shape(0)[-2:]
    elements = 2 * rows * columns + 2 * MOST + 2 * MOST * min(rows, columns)
    return Needs(workspace=elements * instance.type(0).size)


@kernel(NAME, needs=_needs, shared=True)
def small_qr(cx: KernelContext) -> None:
    """Write, for each matrix, a copy to scratch space, the call that factors it, and the triangle
    R.
    """
    body, type_, (rows, columns) = cx.body, cx.type(0), cx.shape(0)[-2:]
    inner = cx.output(0).shape[-1]
    for width in sorted({columns, inner}):
        cx.call(f"reflect_{type_.name}_{width}", _filled(REFLECT, type_, n=width))
    name = f"complex_qr_{type_.name}_{rows}x{columns}_{inner}"
    cx.call(name, _filled(TEXT, type_, m=rows, n=columns, inner=inner))
    body.line(f"{type_.name} *const re = {cx.scratch(type_)}, *const im = re + {rows * columns};")
    with body.shared_loop("b", math.prod(cx.shape(0)[:-2])):
        for number, part in enumerate(("re", "im")):
            source = f"{cx.input(number).name} + b * {rows * columns}"
            body.line(f"memcpy({part}, {source}, {rows * columns} * sizeof(*{part}));")
        unitary = ", ".join(f"{cx.output(i).name} + b * {rows * inner}" for i in range(2))
        body.line(f"{name}(re, im, {unitary}, im + {rows * columns});")
        with body.loops(("i", "j"), (inner, columns)):
            for number, part in enumerate(("re", "im")):
                upper = f"i {'<' if number else '<='} j && i < {rows}"
                to = f"{cx.output(2 + number).name}[b * {inner * columns} + i * {columns} + j]"
                body.line(f"{to} = {upper} ? {part}[i * {columns} + j] : 0;")


def _filled(text: str, type_: CType, **sizes: int) -> str:
    """Return ``text`` with the placeholders of type and sizes replaced."""
    for name, size in {"most": MOST, **sizes}.items():
        text = text.replace(f"@{name}", str(size))
    return text.replace("@t", type_.name).replace("@f", type_.f)
