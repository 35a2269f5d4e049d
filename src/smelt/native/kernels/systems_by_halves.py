"""Recursive triangular solves: one half is solved, then its product is subtracted from the other.

OpenBLAS takes five times as long per multiply-add in ``trsm`` as in ``gemm``: 93 us for 128 right
sides of 128 x 128 floats. The recursion takes 27 us. Rows are contiguous; complex numbers are
interleaved.
"""

from __future__ import annotations

from smelt.native.kernels.blas import PREFIX, pointer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.lapack_calls import letter

FEWEST = 16
"""The fewest rows and right sides for which the recursion is faster than ``trsm``."""

HALVES = """static void NAME(const T *a, ptrdiff_t down, ptrdiff_t right, T *x, ptrdiff_t n,
    ptrdiff_t columns, int lower, int unit)
{
    if (n > 16) {
        const ptrdiff_t first = (n / 2 + 15) / 16 * 16, rest = n - first;
        const T *const corner = a + PARTS * first * (down + right);
        T *const end = x + PARTS * first * columns;
        const int transposed = right == 1 ? 111 : 112, apart = (int)(right == 1 ? down : right);
        if (lower) {
            NAME(a, down, right, x, first, columns, lower, unit);
            GEMM(101, transposed, 111, (int)rest, (int)columns, (int)first, MINUS_ONE,
                a + PARTS * first * down, apart, x, (int)columns, ONE, end, (int)columns);
            NAME(corner, down, right, end, rest, columns, lower, unit);
        } else {
            NAME(corner, down, right, end, rest, columns, lower, unit);
            GEMM(101, transposed, 111, (int)first, (int)columns, (int)rest, MINUS_ONE,
                a + PARTS * first * right, apart, end, (int)columns, ONE, x, (int)columns);
            NAME(a, down, right, x, first, columns, lower, unit);
        }
        return;
    }
    for (ptrdiff_t p = 0; p < n; ++p) {
        const ptrdiff_t i = lower ? p : n - 1 - p;
        T *restrict const row = x + PARTS * i * columns;
        for (ptrdiff_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) {
            const T *const factor = a + PARTS * (i * down + k * right);
            const T *restrict const other = x + PARTS * k * columns;
            SUBTRACT
        }
        if (!unit) {
            const T *const pivot = a + PARTS * i * (down + right);
            DIVIDE
        }
    }
}
"""
"""C that solves ``a @ x = x`` in place for a triangular ``a`` of n x n and ``columns`` right sides.

Element (i, k) of ``a`` is at ``a[i * down + k * right]``: one of both is 1, and says whether the
matrix is transposed. ``unit``: the diagonal counts as ones. Up to 16 rows are solved one by one.
"""

REAL = {
    "PARTS *": "",
    "SUBTRACT": "for (ptrdiff_t j = 0; j < columns; ++j)\n"
    "                row[j] -= factor[0] * other[j];",
    "DIVIDE": "for (ptrdiff_t j = 0; j < columns; ++j)\n                row[j] /= pivot[0];",
    "MINUS_ONE": "-1",
    "ONE": "1",
}
"""The C that replaces words of ``HALVES`` for real numbers; indexes are not multiplied by PARTS."""

COMPLEX = {
    "PARTS": "2",
    "SUBTRACT": """for (ptrdiff_t j = 0; j < columns; ++j) {
                const T re = other[2 * j], im = other[2 * j + 1];
                row[2 * j] -= factor[0] * re - factor[1] * im;
                row[2 * j + 1] -= factor[0] * im + factor[1] * re;
            }""",
    "DIVIDE": """const int wide = fabs(pivot[0]) >= fabs(pivot[1]);
            const T q = wide ? pivot[1] / pivot[0] : pivot[0] / pivot[1];
            const T s = 1 / (wide ? pivot[0] + q * pivot[1] : pivot[0] * q + pivot[1]);
            const T u = wide ? s : q * s, v = wide ? -q * s : -s;
            for (ptrdiff_t j = 0; j < columns; ++j) {
                const T re = row[2 * j], im = row[2 * j + 1];
                row[2 * j] = re * u - im * v;
                row[2 * j + 1] = re * v + im * u;
            }""",
    "MINUS_ONE": "minus_one",
    "ONE": "one",
    "    if (n > 16) {": "    static const T one[2] = {1, 0}, minus_one[2] = {-1, 0};\n"
    "    if (n > 16) {",
}
"""The C that replaces words of ``HALVES`` for complex numbers, each of two floats.

Complex division follows Smith (1962): numbers are scaled by the larger part of the pivot."""


def is_worth(n: int, columns: int, *, left_side: bool) -> bool:
    """True if the recursion is faster than ``trsm`` for ``n`` rows and ``columns`` right sides."""
    return left_side and n > FEWEST and columns >= FEWEST


def emit(
    cx: KernelContext, a: str, x: str, order: int, columns: int, *, is_complex: bool = False
) -> None:
    """Write the solution of the system of the ``order`` rows ``a``, in place of ``x``.

    The instruction's attributes tell which triangle is read, and whether it is transposed.
    """
    c_type = cx.type(0).name
    name = f"by_halves_{letter(cx, is_complex=is_complex)}"
    text = HALVES.replace("NAME", name).replace("GEMM", _gemm(cx, is_complex=is_complex))
    for word, replacement in (COMPLEX if is_complex else REAL).items():
        text = text.replace(word, replacement)
    function = cx.call(name, _with_type(text, c_type))
    transposed = bool(cx.int("transpose_a"))
    steps = f"1, {order}" if transposed else f"{order}, 1"
    lower = int(bool(cx.int("lower")) != transposed)
    unit = int(bool(cx.int("unit_diagonal")))
    cx.body.line(f"{function}({a}, {steps}, {x}, {order}, {columns}, {lower}, {unit});")


def _gemm(cx: KernelContext, *, is_complex: bool) -> str:
    """Return the name of the pointer to BLAS's ``gemm``, and declare the pointer.

    ``pointer`` has the types of functions of real numbers. The complex functions take addresses of
    their scalars, so their pointer is declared here, by the support text that ``cx.call`` adds.
    """
    name = f"{letter(cx, is_complex=is_complex)}gemm"
    if not is_complex:
        return pointer(cx, name)
    parameters = (
        "int, int, int, int, int, int, const void *, const void *, int, const void *, int, "
        "const void *, void *, int"
    )
    return cx.call(f"{PREFIX}{name}", f"static void (*{PREFIX}{name})({parameters});\n")


def _with_type(text: str, t: str) -> str:
    """Return ``text`` with the element type ``T`` replaced by ``t``, such as ``float``."""
    return text.replace("T *", f"{t} *").replace(" T ", f" {t} ")
