"""Decompositions by LAPACK and triangular systems by BLAS, matrix by matrix of a batch.

They replace operators of the domain ``smelt`` if this process has the libraries. Matrices are
passed column by column, as NumPy does, so vectors have the same signs as NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from smelt.native.kernels import cholesky_by_blocks, systems_by_halves
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lapack_calls import (
    PREFIX,
    call,
    fill_nan,
    finite,
    letter,
    to_column_major,
    triangular_flags,
)
from smelt.program.storage import Needs

DOMAIN = "smelt.native"
BLOCK = 32
"""LAPACK's block size in columns, for which a workspace has room."""

Count = Callable[[int, int], int]
"""A function of the rows and columns of the first operand."""


def _work_of_values(rows: int, columns: int) -> int:
    """Return the workspace elements of ``gesdd`` without vectors."""
    least = min(rows, columns)
    return 4 * least * least + 7 * least + max(rows, columns) + BLOCK * (rows + columns)


WORK: Mapping[str, Count] = {
    "LU": lambda m, n: 0,
    "Geqrf": lambda m, n: BLOCK * n,
    "HouseholderProduct": lambda m, n: BLOCK * n,
    "Eigh": lambda m, n: 1 + 6 * n + 2 * n * n + BLOCK * n,
    "SVD": lambda m, n: 2 * m * m + 2 * n * n + _work_of_values(m, n),
    "SingularValues": _work_of_values,
    "Eig": lambda m, n: 2 * n * n + 2 * n + (4 + BLOCK) * n,
}
"""The workspace elements of each operator, as LAPACK's manual demands."""

INTEGERS: Mapping[str, Count] = {
    "Eigh": lambda m, n: 3 + 5 * n,
    "SVD": lambda m, n: 8 * min(m, n),
    "SingularValues": lambda m, n: 8 * min(m, n),
}

NAMES = ("Cholesky", "TriangularSolve", *WORK)


def supports(instance: Instance, name: str) -> bool:
    """True if this file's kernels support the instruction: nonempty real matrices, tall for
    reflectors.
    """
    rows, columns = instance.shape(0)[-2:]
    sizes = [dim for shape in map(instance.shape, range(_operands(instance))) for dim in shape]
    real = all(instance.type(i).name in ("float", "double") for i in range(_operands(instance)))
    return real and 0 not in sizes and (name != "HouseholderProduct" or columns <= rows)


def _operands(instance: Instance) -> int:
    """Return the number of operands."""
    return len(instance.instruction.inputs)


def workspace_needs(instance: Instance) -> Needs:
    """Return the scratch space: a copy of the matrix, LAPACK's workspace, and its integers."""
    name, (rows, columns) = instance.instruction.op.rpartition("::")[2], instance.shape(0)[-2:]
    elements = rows * columns + WORK[name](rows, columns)
    integers = INTEGERS[name](rows, columns) if name in INTEGERS else 0
    return Needs(workspace=elements * instance.type(0).size + 4 * integers)


def _batch(instance: Instance) -> int:
    """Return the number of matrices: all dims but the last two count."""
    return math.prod(instance.shape(0)[:-2])


def _at(pointer: str, count: int) -> str:
    """Return the pointer to matrix ``b`` of the batch, as C."""
    return f"{pointer} + b * {count}"


@kernel(f"{DOMAIN}::Cholesky", needs=cholesky_by_blocks.needs)
def cholesky(cx: KernelContext) -> None:
    """Write the factor of each matrix by blocks or ``potrf``; NaN if it has none."""
    source, output, body, order = cx.input(0), cx.output(), cx.body, cx.shape(0)[-1]
    lower, by_blocks = bool(cx.int("lower")), order >= cholesky_by_blocks.FEWEST
    with body.loop("b", _batch(cx)):
        body.line(f"{source.type.name} *out = {_at(output.name, order * order)};")
        matrix = _at(source.name, order * order)
        if by_blocks:
            body.line(f"const int info = {cholesky_by_blocks.emit(cx, matrix, 'out', order)};")
        else:
            body.line("int info = 0;")
            body.line(f"memcpy(out, {matrix}, {order * order * source.type.size});")
            call(cx, "potrf", '"U"' if lower else '"L"', order, "out", order)
        rows = f"(info ? {order} : 0)" if by_blocks else order
        with body.loop("i", rows), body.loop("j", order):
            inside = "j <= i" if lower else "j >= i"
            element = f"out[i * {order} + j]"
            body.line(f"{element} = {inside} ? (info ? NAN : {element}) : 0;")


@kernel(f"{DOMAIN}::TriangularSolve")
def triangular_solve(cx: KernelContext) -> None:
    """Write solutions by recursive halves or ``trsm``; a zero on the diagonal gives inf or NaN."""
    left, right, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    n, (rows, columns) = left.shape[-1], right.shape[-2:]
    body.line(f"memcpy({output.name}, {right.name}, {right.size * right.type.size});")
    with body.loop("b", _batch(cx)):
        matrix, solution = _at(left.name, n * n), _at(output.name, rows * columns)
        if systems_by_halves.is_worth(n, columns, left_side=bool(cx.int("left_side"))):
            systems_by_halves.emit(cx, matrix, solution, n, columns)
        else:
            _emit_trsm(cx, matrix, solution, (n, rows, columns))


def _emit_trsm(cx: KernelContext, matrix: str, solution: str, sizes: tuple[int, int, int]) -> None:
    """Write the call of ``trsm`` for ``matrix``; ``solution`` is the right side before."""
    word, (order, rows, columns) = cx.type(0).name, sizes
    name = f"{PREFIX}{letter(cx)}trsm"
    parameters = f"int, int, int, int, int, int, int, {word}, const {word} *, int, {word} *, int"
    function = cx.call(name, f"static void (*{name})({parameters});\n")
    arguments = f"{rows}, {columns}, 1, {matrix}, {order}, {solution}, {columns}"
    cx.body.line(f"{function}({triangular_flags(cx)}, {arguments});")


@kernel(f"{DOMAIN}::LU", needs=workspace_needs)
def lu(cx: KernelContext) -> None:
    """Write a call of ``getrf`` for each matrix; a zero pivot leaves its column unchanged."""
    source, output, body, (rows, columns) = cx.input(0), cx.output(), cx.body, cx.shape(0)[-2:]
    scratch, least = cx.scratch(source.type), min(rows, columns)
    with body.loop("b", _batch(cx)):
        body.line("int info = 0;")
        body.line(f"int32_t *pivot = {_at(cx.output(1).name, least)};")
        body.line(f"int32_t *order = {_at(cx.output(2).name, rows)};")
        to_column_major(cx, _at(source.name, rows * columns), scratch, rows, columns)
        call(cx, "getrf", rows, columns, scratch, rows, "(int *)pivot")
        to_column_major(cx, scratch, _at(output.name, rows * columns), columns, rows)
        emit_order(cx, rows, least)


def emit_order(cx: KernelContext, rows: int, count: int) -> None:
    """Write the row order that LAPACK's row swaps ``pivot`` lead to; ``pivot``
    then counts from 0."""
    with cx.body.loop("i", rows):
        cx.body.line("order[i] = (int32_t)i;")
    with cx.body.loop("k", count):
        cx.body.line("const int32_t to = --pivot[k], from = order[k];")
        cx.body.line("order[k] = order[to];")
        cx.body.line("order[to] = from;")


@kernel(f"{DOMAIN}::Geqrf", needs=workspace_needs)
def geqrf(cx: KernelContext) -> None:
    """Write a call of ``geqrf`` for each matrix."""
    source, output, body, (m, n) = cx.input(0), cx.output(), cx.body, cx.shape(0)[-2:]
    scratch, taus = cx.scratch(source.type), cx.output(1)
    with body.loop("b", _batch(cx)):
        body.line("int info = 0;")
        to_column_major(cx, _at(source.name, m * n), scratch, m, n)
        work = f"{scratch} + {m * n}"
        call(cx, "geqrf", m, n, scratch, m, _at(taus.name, min(m, n)), work, BLOCK * n)
        to_column_major(cx, scratch, _at(output.name, m * n), n, m)


@kernel(f"{DOMAIN}::HouseholderProduct", needs=workspace_needs)
def householder_product(cx: KernelContext) -> None:
    """Write a call of ``orgqr`` for each matrix; it does not change the scales ``tau``."""
    source, taus, output, body = cx.input(0), cx.input(1), cx.output(), cx.body
    scratch, (m, n), count = cx.scratch(source.type), cx.shape(0)[-2:], taus.shape[-1]
    with body.loop("b", _batch(cx)):
        body.line("int info = 0;")
        to_column_major(cx, _at(source.name, m * n), scratch, m, n)
        scales = f"({source.type.name} *)({_at(taus.name, count)})"
        call(cx, "orgqr", m, n, count, scratch, m, scales, f"{scratch} + {m * n}", BLOCK * n)
        to_column_major(cx, scratch, _at(output.name, m * n), n, m)


@kernel(f"{DOMAIN}::Eigh", needs=workspace_needs)
def eigh(cx: KernelContext) -> None:
    """Write a call of ``syevd`` for each matrix; a triangle with non-finite elements gives NaN."""
    source, body, n = cx.input(0), cx.body, cx.shape(0)[-1]
    lower = bool(cx.int("lower"))
    vectors, values = _at(cx.output(0).name, n * n), _at(cx.output(1).name, n)
    scratch, work_size = cx.scratch(source.type), WORK["Eigh"](n, n)
    with body.loop("b", _batch(cx)):
        body.line("int info = 0;")
        to_column_major(cx, _at(source.name, n * n), scratch, n, n)
        with body.loops(("j", "i"), (n, n)):
            body.line(f"if ({'i < j' if lower else 'i > j'})")
            body.line(f"    {scratch}[j * {n} + i] = 0;")
        with body.block(f"if (!{finite(cx, scratch, n * n)})"):
            fill_nan(cx, ((vectors, n * n), (values, n)))
            body.line("continue;")
        work, integers = f"{scratch} + {n * n}", f"(int *)({scratch} + {n * n + work_size})"
        side = '"L"' if lower else '"U"'
        call(cx, "syevd", '"V"', side, n, scratch, n, values, work, work_size, integers, 3 + 5 * n)
        cx.fail_if("info != 0")
        to_column_major(cx, scratch, vectors, n, n)


@kernel(f"{DOMAIN}::SVD", needs=workspace_needs)
def svd(cx: KernelContext) -> None:
    """Write a call of ``gesdd`` for each matrix; a matrix with non-finite elements gives NaN."""
    (rows, columns), full = cx.shape(0)[-2:], bool(cx.int("full_matrices"))
    left, right = (rows, columns) if full else (min(rows, columns),) * 2
    scratch = cx.scratch(cx.type(0))
    sizes = (min(rows, columns), rows * left, right * columns)
    results = [_at(cx.output(i).name, size) for i, size in enumerate(sizes)]
    u, vt = f"{scratch} + {rows * columns}", f"{scratch} + {rows * columns + rows * rows}"
    used = rows * columns + rows * rows + columns * columns
    with cx.body.loop("b", _batch(cx)):
        _decompose(cx, '"A"' if full else '"S"', results, (u, rows, vt, right), used)
        to_column_major(cx, u, results[1], left, rows)
        to_column_major(cx, vt, results[2], columns, right)


@kernel(f"{DOMAIN}::SingularValues", needs=workspace_needs)
def singular_values(cx: KernelContext) -> None:
    """Write a call of ``gesdd`` without vectors for each matrix."""
    rows, columns = cx.shape(0)[-2:]
    with cx.body.loop("b", _batch(cx)):
        results, scratch = [_at(cx.output().name, min(rows, columns))], cx.scratch(cx.type(0))
        _decompose(cx, '"N"', results, (scratch, rows, scratch, columns), rows * columns)


def _decompose(
    cx: KernelContext,
    job: str,
    results: list[str],
    vectors: tuple[str, int, str, int],
    used: int,
) -> None:
    """Write the call of ``gesdd``: singular values to ``results``, ``vectors`` to scratch space.

    Each matrix of vectors has its leading dimension. ``used`` elements precede the workspace.
    """
    source, body, (m, n) = cx.input(0), cx.body, cx.shape(0)[-2:]
    scratch, least, (u, u_rows, vt, vt_rows) = cx.scratch(source.type), min(m, n), vectors
    work_size = _work_of_values(m, n)
    body.line("int info = 0;")
    with body.block(f"if (!{finite(cx, _at(source.name, m * n), m * n)})"):
        counts = [math.prod(cx.program.slots[slot].sizes[-2:]) for slot in cx.instruction.outputs]
        fill_nan(cx, list(zip(results, [least, *counts[1:]], strict=True)))
        body.line("continue;")
    to_column_major(cx, _at(source.name, m * n), scratch, m, n)
    work, integers = f"{scratch} + {used}", f"(int *)({scratch} + {m * n + WORK_OF[job](m, n)})"
    workspace = (work, work_size, integers)
    matrix = (scratch, m, results[0])
    name = "gesdd_values" if job == '"N"' else "gesdd"
    call(cx, name, job, m, n, *matrix, u, u_rows, vt, vt_rows, *workspace)
    cx.fail_if("info != 0")


WORK_OF: Mapping[str, Count] = {
    '"N"': WORK["SingularValues"],
    '"S"': WORK["SVD"],
    '"A"': WORK["SVD"],
}
