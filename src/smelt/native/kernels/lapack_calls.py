"""Calls of Fortran's LAPACK from C: numbers by address, matrices column-major."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.operators.lapack.ordinary_scale import ORDINARY_EXPONENTS

PREFIX = "blas_"
"""The prefix of function pointers in the C text."""

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
    """Return the type letter in a LAPACK name: s or d, for complex numbers c or z."""
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
    t, function = cx.type(0).name, f"{PREFIX}{letter(cx, is_complex=is_complex)}{name}"
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
            types.append("int *" if each.startswith("(int") else f"{t} *")
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
    t = cx.type(0).name
    function = cx.call(f"column_major_{t}", _with_type(COLUMN_MAJOR, t))
    cx.body.line(f"{function}({source}, {target}, {rows}, {columns});")


def interleaved(
    cx: KernelContext, parts: Sequence[str], target: str, rows: int, columns: int
) -> None:
    """Write the copy of both parts of a row-major complex matrix to column-major pairs."""
    t = cx.type(0).name
    function = cx.call(f"interleaved_{t}", _with_type(JOIN, t))
    cx.body.line(f"{function}({', '.join(parts)}, {target}, {rows}, {columns});")


def split_pairs(
    cx: KernelContext, source: str, parts: Sequence[str], rows: int, columns: int
) -> None:
    """Write the reverse of ``interleaved``: column-major pairs to row-major parts."""
    t = cx.type(0).name
    function = cx.call(f"split_pairs_{t}", _with_type(SPLIT_PAIRS, t))
    cx.body.line(f"{function}({source}, {', '.join(parts)}, {rows}, {columns});")


def finite(cx: KernelContext, pointer: str, count: int) -> str:
    """Return the C condition that all elements are finite."""
    t = cx.type(0).name
    return f"{cx.call(f'finite_{t}', _with_type(FINITE, t))}({pointer}, {count})"


def shift(cx: KernelContext, pointer: str, count: int) -> None:
    """Declare ``shift``, the exponent that scales finite elements to an ordinary magnitude.

    It is 0 for ordinary elements, as in nearly all matrices.
    """
    t = cx.type(0).name
    text = _with_type(SHIFT, t).replace("BOUND", str(ORDINARY_EXPONENTS[cx.type(0).size]))
    cx.body.line(f"const int shift = {cx.call(f'shift_{t}', text)}({pointer}, {count});")


def shifted(cx: KernelContext, pointer: str, count: int, shift: str) -> None:
    """Write the multiplication of elements by the power of two ``shift``, in place."""
    t = cx.type(0).name
    function = cx.call(f"shifted_{t}", _with_type(SHIFTED, t))
    cx.body.line(f"{function}({pointer}, {count}, {shift});")


def fill_nan(cx: KernelContext, targets: Sequence[tuple[str, int]]) -> None:
    """Write loops that set all elements of each target, a pointer and a count, to NaN."""
    for pointer, count in targets:
        with cx.body.loop("i", count):
            cx.body.line(f"({pointer})[i] = NAN;")


def _with_type(text: str, t: str) -> str:
    """Return ``text`` with the type ``T`` replaced by ``t``."""
    return text.replace("_T(", f"_{t}(").replace("T *", f"{t} *").replace(" T ", f" {t} ")
