"""LU and triangular systems of complex matrices whose real and imaginary parts are operands.

The algorithms are those of ``triangular_factors``. A division first scales by the larger part of
the divisor, so that its square neither overflows nor underflows.
"""

from __future__ import annotations

import math

from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.triangular_factors import exchange

PARTS = ("re", "im")


def _batch(cx: KernelContext) -> int:
    """Return the number of matrices: all dims but the last two count."""
    return math.prod(cx.shape(0)[:-2])


def _copy(cx: KernelContext, first: int, size: int) -> None:
    """Declare ``re`` and ``im``, matrix ``b`` of the outputs, and copy inputs ``first`` and the
    next into them.
    """
    for i, part in enumerate(PARTS):
        cx.body.line(f"{cx.type(0).name} *const {part} = {cx.output(i).name} + b * {size};")
        source = f"{cx.input(first + i).name} + b * {size}"
        cx.body.line(f"memcpy({part}, {source}, sizeof(*{part}) * (size_t)({size}));")


def _divisor(cx: KernelContext, re: str, im: str, *, zero_is_one: bool) -> None:
    """Declare the C variables ``c``, ``s`` and ``by``, by which ``_quotient`` divides.

    The quotient of ``u + v i`` and the divisor ``re + im i`` is
    ``(u c + v s) / by + ((v c - u s) / by) i``. With ``zero_is_one``, the divisor zero counts as 1.

    ```
    const float large = fabsf(first) > fabsf(second) ? first : second;
    const float c = first / large, s = second / large;
    const float by = large * (c * c + s * s);
    ```
    """
    type_, body = cx.type(0), cx.body
    body.line(f"const {type_.name} first = {re}, second = {im};")
    body.line(
        f"const {type_.name} large = fabs{type_.f}(first) > fabs{type_.f}(second) ? first : second;"
    )
    if_zero = "first == 0 && second == 0 ? " if zero_is_one else ""
    identities = ("1 : ", "0 : ", "1 : ") if zero_is_one else ("",) * 3
    values = ("first / large", "second / large", "large * (c * c + s * s)")
    for name, identity, value in zip(("c", "s", "by"), identities, values, strict=True):
        body.line(f"const {type_.name} {name} = {if_zero}{identity}{value};")


def _quotient(cx: KernelContext, re: str, im: str) -> None:
    """Write the division of the number at ``re`` and ``im`` by the divisor, in place."""
    cx.body.line(f"const {cx.type(0).name} u = {re}, v = {im};")
    cx.body.line(f"{re} = (u * c + v * s) / by;")
    cx.body.line(f"{im} = (v * c - u * s) / by;")


def _subtract_product(cx: KernelContext, target: str, source: str) -> None:
    """Write the subtraction of ``p + q i`` times element ``source`` from element ``target``."""
    body = cx.body
    body.line(f"re[{target}] -= p * re[{source}] - q * im[{source}];")
    body.line(f"im[{target}] -= p * im[{source}] + q * re[{source}];")


@kernel("smelt::ComplexLU", kinds=FLOAT)
def lu(cx: KernelContext) -> None:
    """Write the LU factors of each matrix, column by column; the pivot has the largest ``|re| +
    |im|``.
    """
    body, type_, (rows, columns) = cx.body, cx.type(0), cx.shape(0)[-2:]
    pivots, order, size = cx.output(2), cx.output(3), rows * columns
    count = pivots.shape[-1]
    with body.loop("b", _batch(cx)):
        body.line(f"{order.type.name} *const order = {order.name} + b * {rows};")
        _copy(cx, 0, size)
        with body.loop("i", rows):
            body.line(f"order[i] = ({order.type.name})i;")
        with body.loop("k", count):
            body.line("ptrdiff_t row = k;")
            with body.loop("i", rows, start="k + 1"):
                sizes = [
                    " + ".join(f"fabs{type_.f}({part}[{i} * {columns} + k])" for part in PARTS)
                    for i in ("i", "row")
                ]
                body.line(f"row = {sizes[0]} > {sizes[1]} ? i : row;")
            body.line(f"{pivots.name}[b * {count} + k] = ({pivots.type.name})row;")
            with body.loop("j", f"(row != k ? {columns} : 0)"):
                for part in PARTS:
                    with body.block(""):
                        pivot_row, swap_row = (f"{part}[{i} * {columns} + j]" for i in ("k", "row"))
                        exchange(cx, type_.name, pivot_row, swap_row)
            with body.block(""):
                exchange(cx, order.type.name, "order[k]", "order[row]")
            _divisor(cx, *(f"{part}[k * {columns} + k]" for part in PARTS), zero_is_one=True)
            with body.loop("i", rows, start="k + 1"):
                below = [f"{part}[i * {columns} + k]" for part in PARTS]
                _quotient(cx, *below)
                body.line(f"const {type_.name} p = {below[0]}, q = {below[1]};")
                with body.loop("j", columns, start="k + 1"):
                    _subtract_product(cx, f"i * {columns} + j", f"k * {columns} + j")


@kernel("smelt::ComplexTriangularSolve", kinds=FLOAT)
def triangular_solve(cx: KernelContext) -> None:
    """Write the solutions by substitution; a system from the right is solved as its transpose."""
    body, type_, order, left = cx.body, cx.type(0), cx.shape(0)[-1], bool(cx.int("left_side"))
    columns = cx.shape(2)[-1] if left else cx.shape(2)[-2]
    # x @ a = b is solved as a^T @ x^T = b^T, and the transpose of a lower triangle is upper.
    transposed = bool(cx.int("transpose_a")) == left
    lower, size = bool(cx.int("lower")) != transposed, order * columns

    def index_in_a(i: str, k: str) -> str:
        """Return the index of an element of the matrix, transposed if ``transposed``."""
        return f"{k} * {order} + {i}" if transposed else f"{i} * {order} + {k}"

    def index_in_x(i: str, j: str) -> str:
        """Return the index of an element of the right side, transposed for a
        system from the right."""
        return f"{i} * {columns} + {j}" if left else f"{j} * {order} + {i}"

    minus = "-" if cx.int("conjugate_a") else ""
    with body.loop("b", _batch(cx)):
        for i, part in enumerate(PARTS):
            matrix = f"{cx.input(i).name} + b * {order * order}"
            body.line(f"const {type_.name} *const a_{part} = {matrix};")
        _copy(cx, 2, size)
        with body.loop("r", order):
            body.line(f"const ptrdiff_t i = {'r' if lower else f'{order} - 1 - r'};")
            start, stop = ("0", "i") if lower else ("i + 1", str(order))
            with body.loop("k", stop, start=start):
                at = index_in_a("i", "k")
                body.line(f"const {type_.name} p = a_re[{at}], q = {minus}a_im[{at}];")
                with body.loop("j", columns):
                    _subtract_product(cx, index_in_x("i", "j"), index_in_x("k", "j"))
            if not cx.int("unit_diagonal"):
                at = index_in_a("i", "i")
                _divisor(cx, f"a_re[{at}]", f"{minus}a_im[{at}]", zero_is_one=False)
                with body.loop("j", columns):
                    _quotient(cx, *(f"{part}[{index_in_x('i', 'j')}]" for part in PARTS))
