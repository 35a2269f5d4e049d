"""Calls of Fortran's LAPACK from C: numbers by address, matrices column-major."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.native.kernels.blas import PLAIN, ROWS, TRANSPOSED
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.operators.lapack.ordinary_scale import ORDINARY_EXPONENTS

PREFIX = "blas_"
"""The prefix of function pointers in the C text."""

UPPER, LOWER, NON_UNIT, UNIT, LEFT, RIGHT = 121, 122, 131, 132, 141, 142
"""The numbers by which ``cblas.h`` names the triangle, the diagonal and the side of a system."""

BLOCKS = """    for (ptrdiff_t i0 = 0; i0 < rows; i0 += 8)
        for (ptrdiff_t j0 = 0; j0 < columns; j0 += 8) {
            const ptrdiff_t ie = rows - i0 < 8 ? rows : i0 + 8;
            const ptrdiff_t je = columns - j0 < 8 ? columns : j0 + 8;
            for (ptrdiff_t j = j0; j < je; ++j)
                for (ptrdiff_t i = i0; i < ie; ++i) {
"""
"""Loops over 8x8 blocks, so that cache lines of both sides stay in the first-level cache."""

COLUMN_MAJOR = f"""static void column_major_T(const T *restrict from, T *restrict to,
    ptrdiff_t rows, ptrdiff_t columns)
{{
{BLOCKS}                    to[j * rows + i] = from[i * columns + j];
                }}
        }}
}}
"""

JOIN = f"""static void interleaved_T(const T *restrict re, const T *restrict im, T *restrict to,
    ptrdiff_t rows, ptrdiff_t columns)
{{
{BLOCKS}                    to[2 * (j * rows + i)] = re[i * columns + j];
                    to[2 * (j * rows + i) + 1] = im[i * columns + j];
                }}
        }}
}}
"""

SPLIT_PAIRS = f"""static void split_pairs_T(const T *restrict from, T *restrict re, T *restrict im,
    ptrdiff_t rows, ptrdiff_t columns)
{{
{BLOCKS}                    re[i * columns + j] = from[2 * (j * rows + i)];
                    im[i * columns + j] = from[2 * (j * rows + i) + 1];
                }}
        }}
}}
"""

FINITE = """static int finite_T(const T *x, ptrdiff_t n)
{
    T none = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        none += x[i] * 0;
    return none == 0;
}
"""

SHIFT = """static int shift_T(const T *x, ptrdiff_t n)
{
    T largest = 0;
    int exponent = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    frexp(largest, &exponent);
    if (exponent > BOUND)
        return exponent - BOUND;
    return exponent < -BOUND ? exponent + BOUND : 0;
}
"""

SHIFTED = """static void shifted_T(T *x, ptrdiff_t n, int shift)
{
    if (shift)
        for (ptrdiff_t i = 0; i < n; ++i)
            x[i] = ldexp(x[i], shift);
}
"""


def letter(instance: Instance, *, is_complex: bool = False) -> str:
    """Return the type letter in a LAPACK name such as ``spotrf``: s or d, for complex c or z."""
    return ("cz" if is_complex else "sd")[instance.type(0).name == "double"]


def call(cx: KernelContext, name: str, *arguments: str | int, is_complex: bool = False) -> None:
    """Write the call of a LAPACK subroutine; the C variable ``info`` receives its status.

    Quoted arguments are characters, other texts are pointers to elements, and texts that begin with
    ``(int`` are pointers to integers.

    ```
    {
        const int n1 = 4, n3 = 4;
        blas_spotrf("U", &n1, a, &n3, &info, 1);
    }
    ```
    """
    c_type, function = cx.type(0).name, f"{PREFIX}{letter(cx, is_complex=is_complex)}{name}"
    types, c_arguments, numbers, ends = [], [], [], []
    for number, each in enumerate(arguments):
        if isinstance(each, int):
            types.append("const int *")
            numbers.append(f"n{number} = {each}")
            c_arguments.append(f"&n{number}")
        elif each.startswith('"'):
            types.append("const char *")
            ends.append("size_t")
            c_arguments.append(each)
        else:
            types.append("int *" if each.startswith("(int") else f"{c_type} *")
            c_arguments.append(each)
    types += ["int *", *ends]
    c_arguments += ["&info", *("1" for _ in ends)]
    pointer = cx.call(function, f"static void (*{function})({', '.join(types)});\n")
    with cx.body.block(""):
        if numbers:
            cx.body.line(f"const int {', '.join(numbers)};")
        cx.body.line(f"{pointer}({', '.join(c_arguments)});")


def to_column_major(cx: KernelContext, source: str, target: str, rows: int, columns: int) -> None:
    """Write the copy of a row-major matrix to a column-major one.

    For the reverse, swap ``rows`` and ``columns``.
    """
    c_type = cx.type(0).name
    function = cx.call(f"column_major_{c_type}", _with_type(COLUMN_MAJOR, c_type))
    cx.body.line(f"{function}({source}, {target}, {rows}, {columns});")


def interleaved(
    cx: KernelContext, parts: Sequence[str], target: str, rows: int, columns: int
) -> None:
    """Write the copy of both parts of a row-major complex matrix to column-major pairs."""
    c_type = cx.type(0).name
    function = cx.call(f"interleaved_{c_type}", _with_type(JOIN, c_type))
    cx.body.line(f"{function}({', '.join(parts)}, {target}, {rows}, {columns});")


def split_pairs(
    cx: KernelContext, source: str, parts: Sequence[str], rows: int, columns: int
) -> None:
    """Write the reverse of ``interleaved``: column-major pairs to row-major parts."""
    c_type = cx.type(0).name
    function = cx.call(f"split_pairs_{c_type}", _with_type(SPLIT_PAIRS, c_type))
    cx.body.line(f"{function}({source}, {', '.join(parts)}, {rows}, {columns});")


def finite(cx: KernelContext, pointer: str, count: int) -> str:
    """Return the C condition that all elements are finite: ``finite_float(a, 16)``."""
    c_type = cx.type(0).name
    return f"{cx.call(f'finite_{c_type}', _with_type(FINITE, c_type))}({pointer}, {count})"


def declare_shift(cx: KernelContext, pointer: str, count: int) -> None:
    """Declare ``shift``, the exponent that scales finite elements to an ordinary magnitude.

    It is 0 for ordinary elements, as in nearly all matrices.
    """
    c_type = cx.type(0).name
    text = _with_type(SHIFT, c_type).replace("BOUND", str(ORDINARY_EXPONENTS[cx.type(0).size]))
    cx.body.line(f"const int shift = {cx.call(f'shift_{c_type}', text)}({pointer}, {count});")


def emit_scaling(cx: KernelContext, pointer: str, count: int, shift: str) -> None:
    """Write the multiplication of elements by the power of two ``shift``, in place."""
    c_type = cx.type(0).name
    function = cx.call(f"shifted_{c_type}", _with_type(SHIFTED, c_type))
    cx.body.line(f"{function}({pointer}, {count}, {shift});")


def triangular_flags(cx: KernelContext) -> str:
    """Return the first five arguments of a CBLAS ``trsm``, for rows: ``101, 141, 122, 111, 131``.

    The example is a lower matrix on the left side, not transposed, whose diagonal is read.
    """
    side = LEFT if cx.int("left_side") else RIGHT
    triangle = LOWER if cx.int("lower") else UPPER
    transposition = TRANSPOSED if cx.int("transpose_a") else PLAIN
    diagonal = UNIT if cx.int("unit_diagonal") else NON_UNIT
    return ", ".join(map(str, (ROWS, side, triangle, transposition, diagonal)))


def fill_nan(cx: KernelContext, targets: Sequence[tuple[str, int]]) -> None:
    """Write loops that set all elements of each target, a pointer and a count, to NaN."""
    for pointer, count in targets:
        with cx.body.loop("i", count):
            cx.body.line(f"({pointer})[i] = NAN;")


def _with_type(text: str, c_type: str) -> str:
    """Return ``text`` with the type ``T`` replaced, also in names: ``finite_float``."""
    return (
        text.replace("_T(", f"_{c_type}(")
        .replace("T *", f"{c_type} *")
        .replace(" T ", f" {c_type} ")
    )
