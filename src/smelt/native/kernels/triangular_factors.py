"""LU, Cholesky and TriangularSolve by plain loops, matrix by matrix.

They are for small matrices, as in filters and fits, for which a library call would take longer.
Inner loops run along rows, which are contiguous.
"""

from __future__ import annotations

import math

from smelt.native.kernels.kernel import FLOAT, KernelContext, kernel
from smelt.native.kernels.operand import Operand
from smelt.program.storage import Needs
from smelt.runtime.c_library import ERROR_SINGULAR


def _matrix(cx: KernelContext, operand: Operand, name: str, *, constant: bool = False) -> None:
    """Declare ``name``, the pointer to matrix ``b`` of ``operand``."""
    word = f"const {operand.type.name} *const" if constant else f"{operand.type.name} *const"
    rows, columns = operand.shape[-2:]
    cx.body.line(f"{word} {name} = {operand.name} + b * {rows * columns};")


def _batch(operand: Operand) -> int:
    """Return the number of matrices: all dims but the last two count."""
    return math.prod(operand.shape[:-2])


@kernel("smelt::Cholesky", kinds=FLOAT)
def cholesky(cx: KernelContext) -> None:
    """Write Cholesky factors column by column; a pivot that is not positive makes the triangle NaN.

    ``lower`` says which triangle is read and written. An upper triangle is that of the transposed
    factor, so ``l`` is indexed ``[j, i]``. The C for upper triangles of 12 x 12, for i >= j:

    ```
    float s = m[j * 12 + i];
    for (ptrdiff_t k = 0; k < j; ++k)
        s -= l[k * 12 + i] * l[k * 12 + j];
    failed |= i == j && !(s > 0);
    l[j * 12 + i] = i == j ? sqrtf(s) : s / l[j * 12 + j];
    ```
    """
    operand, output, body, type_ = cx.input(0), cx.output(), cx.body, cx.type(0)
    size, lower = operand.shape[-1], cx.int("lower")

    def at(matrix: str, i: str, j: str) -> str:
        """Return an element of the triangle, as C; an upper triangle is read as a lower one."""
        return f"{matrix}[{i} * {size} + {j}]" if lower else f"{matrix}[{j} * {size} + {i}]"

    with body.loop("b", _batch(operand)):
        _matrix(cx, operand, "m", constant=True)
        _matrix(cx, output, "l")
        body.line("int failed = 0;")
        with body.loop("j", size):
            with body.loop("i", "j"):
                body.line(f"{at('l', 'i', 'j')} = 0;")
            with body.loop("i", size, start="j"):
                body.line(f"{type_.name} s = {at('m', 'i', 'j')};")
                with body.loop("k", "j"):
                    body.line(f"s -= {at('l', 'i', 'k')} * {at('l', 'j', 'k')};")
                body.line("failed |= i == j && !(s > 0);")
                pivot = at("l", "j", "j")
                body.line(f"{at('l', 'i', 'j')} = i == j ? sqrt{type_.f}(s) : s / {pivot};")
        with body.loop("j", f"(failed ? {size} : 0)"), body.loop("i", size, start="j"):
            body.line(f"{at('l', 'i', 'j')} = NAN;")


@kernel("smelt::LU", kinds=FLOAT)
def lu(cx: KernelContext) -> None:
    """Write LU factors column by column, with partial pivoting.

    The C of the elimination below pivot k of 3 x 3, after the rows k and p are exchanged:

    ```
    m[i * 3 + k] = pivot != 0 ? m[i * 3 + k] / pivot : m[i * 3 + k];
    for (ptrdiff_t j = k + 1; j < 3; ++j)
        m[i * 3 + j] -= m[i * 3 + k] * m[k * 3 + j];
    ```
    """
    matrix, output, body, type_ = cx.input(0), cx.output(0), cx.body, cx.type(0)
    pivots, order = cx.output(1), cx.output(2)
    rows, columns = matrix.shape[-2:]
    count = pivots.shape[-1]
    with body.loop("b", _batch(matrix)):
        _matrix(cx, output, "m")
        body.line(f"{order.type.name} *const order = {order.name} + b * {rows};")
        size = rows * columns
        body.line(f"memcpy(m, {matrix.name} + b * {size}, sizeof(*m) * (size_t)({size}));")
        with body.loop("i", rows):
            body.line(f"order[i] = ({order.type.name})i;")
        with body.loop("k", count):
            body.line("ptrdiff_t p = k;")
            with body.loop("i", rows, start="k + 1"):
                sizes = [f"fabs{type_.f}(m[{i} * {columns} + k])" for i in ("i", "p")]
                body.line(f"p = {sizes[0]} > {sizes[1]} ? i : p;")
            body.line(f"{pivots.name}[b * {count} + k] = ({pivots.type.name})p;")
            with body.loop("j", f"(p != k ? {columns} : 0)"):
                exchange(cx, type_.name, f"m[k * {columns} + j]", f"m[p * {columns} + j]")
            with body.block(""):
                exchange(cx, order.type.name, "order[k]", "order[p]")
            _eliminate(cx, rows, columns)


@kernel("smelt::FullPivotLU", kinds=FLOAT)
def full_pivot_lu(cx: KernelContext) -> None:
    """Write LU factors with full pivoting; NaN is chosen last as a pivot.

    ```
    … p and q are the row and the column of the largest element from (k, k) on
    for (ptrdiff_t j = 0; j < (p != k ? 3 : 0); ++j) {
        … exchange m[k * 3 + j] and m[p * 3 + j], and columns likewise
    … exchange down[k] and down[p], across[k] and across[q]
    ```
    """
    matrix, output, body, type_ = cx.input(0), cx.output(0), cx.body, cx.type(0)
    rows, columns = matrix.shape[-2:]
    orders = ((cx.output(1), rows, "down"), (cx.output(2), columns, "across"))
    size = rows * columns
    with body.loop("b", _batch(matrix)):
        _matrix(cx, output, "m")
        for order, count, name in orders:
            body.line(f"{order.type.name} *const {name} = {order.name} + b * {count};")
            with body.loop("i", count):
                body.line(f"{name}[i] = ({order.type.name})i;")
        body.line(f"memcpy(m, {matrix.name} + b * {size}, sizeof(*m) * (size_t)({size}));")
        with body.loop("k", min(rows, columns)):
            body.line("ptrdiff_t p = k, q = k;")
            body.line(f"{type_.name} most = -1;")
            with body.loop("i", rows, start="k"), body.loop("j", columns, start="k"):
                body.line(f"const {type_.name} v = m[i * {columns} + j];")
                body.line(f"const {type_.name} large = v != v ? -1 : fabs{type_.f}(v);")
                body.line("p = large >= most ? i : p;")
                body.line("q = large >= most ? j : q;")
                body.line("most = large >= most ? large : most;")
            for pivot, stop, own_element, pivot_element in (
                ("p", columns, f"m[k * {columns} + j]", f"m[p * {columns} + j]"),
                ("q", rows, f"m[j * {columns} + k]", f"m[j * {columns} + q]"),
            ):
                with body.loop("j", f"({pivot} != k ? {stop} : 0)"):
                    exchange(cx, type_.name, own_element, pivot_element)
            for (order, _, name), pivot in zip(orders, "pq", strict=True):
                with body.block(""):
                    exchange(cx, order.type.name, f"{name}[k]", f"{name}[{pivot}]")
            _eliminate(cx, rows, columns)


def _eliminate(cx: KernelContext, rows: int, columns: int) -> None:
    """Write the elimination below pivot ``k`` of the matrix ``m``; a pivot of 0 changes nothing."""
    body, type_ = cx.body, cx.type(0)
    body.line(f"const {type_.name} pivot = m[k * {columns} + k];")
    with body.loop("i", rows, start="k + 1"):
        below = f"m[i * {columns} + k]"
        body.line(f"{below} = pivot != 0 ? {below} / pivot : {below};")
        body.line(f"const {type_.name} share = {below};")
        with body.loop("j", columns, start="k + 1"):
            body.line(f"m[i * {columns} + j] -= share * m[k * {columns} + j];")


def exchange(cx: KernelContext, c_type: str, first: str, second: str) -> None:
    """Write a swap of two places of the C type ``c_type``; it declares the variable ``v``."""
    cx.body.line(f"const {c_type} v = {first};")
    cx.body.line(f"{first} = {second};")
    cx.body.line(f"{second} = v;")


@kernel("smelt::PivotsToPermutation", kinds=frozenset({"int"}))
def pivots_to_permutation(cx: KernelContext) -> None:
    """Write the permutation that results from one swap after the other."""
    pivots, output, body = cx.input(0), cx.output(), cx.body
    swaps, count = pivots.shape[-1], output.shape[-1]
    with body.loop("b", math.prod(pivots.shape[:-1])):
        body.line(f"{output.type.name} *const order = {output.name} + b * {count};")
        with body.loop("i", count):
            body.line(f"order[i] = ({output.type.name})i;")
        with body.loop("k", swaps):
            body.line(f"const ptrdiff_t p = (ptrdiff_t){pivots.name}[b * {swaps} + k];")
            with body.block(f"if (k < {count} && p >= 0 && p < {count})"):
                exchange(cx, output.type.name, "order[k]", "order[p]")


@kernel("smelt::TriangularSolve", kinds=FLOAT)
def triangular_solve(cx: KernelContext) -> None:
    """Write solutions by substitution; a system from the right is solved with both sides
    transposed.

    The C for a transposed lower 4 x 4 matrix, whose rows i are solved from the last to the first:

    ```
    for (ptrdiff_t k = i + 1; k < 4; ++k)
        for (ptrdiff_t j = 0; j < 4; ++j)
            x[i * 4 + j] -= m[k * 4 + i] * x[k * 4 + j];
    x[i * 4 + j] /= m[i * 4 + i];
    ```
    """
    matrix, right, output, body, type_ = cx.input(0), cx.input(1), cx.output(), cx.body, cx.type(0)
    n, left = matrix.shape[-1], bool(cx.int("left_side"))
    columns = right.shape[-1] if left else right.shape[-2]
    # x @ a = b is solved as a^T @ x^T = b^T.
    transposed = bool(cx.int("transpose_a")) == left
    lower = bool(cx.int("lower")) != transposed

    def element_of_a(i: str, k: str) -> str:
        """Return an element of the matrix, or of its transpose if ``transposed``, as C."""
        return f"m[{k} * {n} + {i}]" if transposed else f"m[{i} * {n} + {k}]"

    def element_of_x(i: str, j: str) -> str:
        """Return an element of the right side, transposed for a system from the right, as C."""
        return f"x[{i} * {columns} + {j}]" if left else f"x[{j} * {n} + {i}]"

    size = n * columns
    with body.loop("b", _batch(matrix)):
        _matrix(cx, matrix, "m", constant=True)
        _matrix(cx, output, "x")
        body.line(f"memcpy(x, {right.name} + b * {size}, sizeof(*x) * (size_t)({size}));")
        with body.loop("r", n):
            body.line(f"const ptrdiff_t i = {'r' if lower else f'{n} - 1 - r'};")
            start, stop = ("0", "i") if lower else ("i + 1", str(n))
            with body.loop("k", stop, start=start):
                body.line(f"const {type_.name} share = {element_of_a('i', 'k')};")
                with body.loop("j", columns):
                    body.line(f"{element_of_x('i', 'j')} -= share * {element_of_x('k', 'j')};")
            if not cx.int("unit_diagonal"):
                body.line(f"const {type_.name} pivot = {element_of_a('i', 'i')};")
                with body.loop("j", columns):
                    body.line(f"{element_of_x('i', 'j')} /= pivot;")


@kernel("smelt::ValidateNonsingular", kinds=FLOAT, needs=lambda instance: Needs(in_place=(0,)))
def validate_nonsingular(cx: KernelContext) -> None:
    """Write a check that ends the run if a pivot is 0 or not finite, then a copy of the factors."""
    u, output, body = cx.input(0), cx.output(), cx.body
    rows, columns = u.shape[-2:]
    cx.may_fail(ERROR_SINGULAR)
    with body.loop("b", _batch(u)), body.loop("k", min(rows, columns)):
        body.line(f"const {u.type.name} p = {u.name}[b * {rows * columns} + k * {columns} + k];")
        body.line("if (p == 0 || p - p != 0)")
        body.line("    return 1;")
    if u.name != output.name:
        body.line(f"memcpy({output.name}, {u.name}, sizeof(*{output.name}) * (size_t)({u.size}));")
