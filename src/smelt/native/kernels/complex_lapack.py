"""Decompositions of complex matrices by LAPACK, with real and imaginary parts as operands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from smelt.native.kernels import systems_by_halves
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lapack import BLOCK, DOMAIN, emit_order
from smelt.native.kernels.lapack_calls import (
    PREFIX,
    call,
    fill_nan,
    finite,
    interleaved,
    letter,
    split_pairs,
    triangular_flags,
)
from smelt.program.storage import Needs

NAMES = (
    *("ComplexCholesky", "ComplexLU", "ComplexEigh", "ComplexSVD", "ComplexSingularValues"),
    "ComplexTriangularSolve",
    "ComplexQR",
)


def supports(instance: Instance) -> bool:
    """True if this file's kernels support the instruction: nonempty float matrices in two parts."""
    operands = range(len(instance.instruction.inputs))
    shapes = [instance.shape(i) for i in operands]
    real = all(instance.type(i).name in ("float", "double") for i in operands)
    return real and not any(0 in shape for shape in shapes) and shapes[::2] == shapes[1::2]


def _work(name: str, rows: int, columns: int) -> tuple[int, int, int]:
    """Return LAPACK's workspace as its manual demands: complex numbers, reals and integers."""
    least, most = min(rows, columns), max(rows, columns)
    if name in ("ComplexCholesky", "ComplexLU"):
        return 0, 0, 0
    if name == "ComplexEigh":
        return (
            columns * columns + (2 + BLOCK) * columns,
            1 + 5 * columns + 2 * columns * columns,
            3 + 5 * columns,
        )
    if name == "ComplexQR":
        return least + rows * rows + BLOCK * most, 0, 0
    numbers = 2 * least * least + 4 * least + 2 * most + BLOCK * (rows + columns)
    reals = max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least)
    return numbers, reals, 8 * least


def _needs_of_systems(instance: Instance) -> Needs:
    """Return the scratch space for both operands with interleaved parts."""
    elements = sum(math.prod(instance.shape(i)[-2:]) for i in range(4))
    return Needs(workspace=elements * instance.type(0).size)


def _needs(instance: Instance) -> Needs:
    """Return the scratch space for the interleaved matrix, its vectors and LAPACK's workspace."""
    name, (rows, columns) = instance.instruction.op.rpartition("::")[2], instance.shape(0)[-2:]
    numbers, reals, integers = _work(name, rows, columns)
    vectors = rows * rows + columns * columns if name == "ComplexSVD" else 0
    elements = 2 * (rows * columns + vectors + numbers) + reals
    return Needs(workspace=elements * instance.type(0).size + 4 * integers)


def emit_interleaved(cx: KernelContext, rows: int, columns: int, triangle: str = "") -> None:
    """Write matrix ``b`` to ``a``, column by column with interleaved parts.

    Of a Hermitian matrix only ``triangle`` is kept; the rest becomes 0.
    """
    body, (re, im) = cx.body, (f"{cx.input(part).name} + b * {rows * columns}" for part in range(2))
    interleaved(cx, (re, im), "a", rows, columns)
    if triangle:
        below = triangle == "upper"
        with (
            body.loop("j", columns),
            body.loop("i", rows if below else "j", "j + 1" if below else 0),
        ):
            body.line(f"a[2 * (j * {rows} + i)] = a[2 * (j * {rows} + i) + 1] = 0;")


def emit_split(
    cx: KernelContext, source: str, results: Sequence[str], rows: int, columns: int
) -> None:
    """Write both parts of the column-major matrix of pairs at ``source`` to ``results``."""
    split_pairs(cx, source, results, rows, columns)


def _at(cx: KernelContext, output: int, count: int) -> str:
    """Return the C address of matrix ``b`` of an output whose matrices have ``count`` elements."""
    return f"{cx.output(output).name} + b * {count}"


@kernel(f"{DOMAIN}::ComplexCholesky", needs=_needs)
def cholesky(cx: KernelContext) -> None:
    """Write a call of ``potrf`` for each matrix; a matrix without a factor gives NaN.

    LAPACK reads rows as columns, hence the conjugate matrix.

    ```
    a[2 * i + 0] = x0[b * 16 + i], a[2 * i + 1] = x1[b * 16 + i];
    blas_cpotrf("U", &n1, a, &n3, &info, 1);
    out0[i * 4 + j] = info ? NAN : a[2 * (i * 4 + j) + 0];
    ```
    """
    body, order, c_type = cx.body, cx.shape(0)[-1], cx.type(0).name
    body.line(f"{c_type} *const a = {cx.scratch(cx.type(0))};")
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        _emit_pairs(cx, "a", 0, order * order)
        call(cx, "potrf", '"U"', order, "a", order, is_complex=True)
        for part in range(2):
            body.line(f"{c_type} *const restrict out{part} = {_at(cx, part, order * order)};")
        with body.loop("i", order):
            with body.loop("j", "i + 1"):
                for part in range(2):
                    value = f"a[2 * (i * {order} + j) + {part}]"
                    body.line(f"out{part}[i * {order} + j] = info ? NAN : {value};")
            with body.loop("j", order, "i + 1"):
                body.line(f"out0[i * {order} + j] = out1[i * {order} + j] = 0;")


def _emit_pairs(cx: KernelContext, target: str, first: int, count: int, minus: str = "") -> None:
    """Write matrix ``b`` to ``target``, row by row with interleaved parts.

    Its parts are operands ``first`` and ``first + 1``; ``minus`` negates the imaginary part.
    """
    with cx.body.loop("i", count):
        for part, sign in enumerate(("", minus)):
            value = f"{cx.input(first + part).name}[b * {count} + i]"
            cx.body.line(f"{target}[2 * i + {part}] = {sign}{value};")


@kernel(f"{DOMAIN}::ComplexLU", needs=_needs)
def lu(cx: KernelContext) -> None:
    """Write a call of ``getrf`` for each matrix; a zero pivot leaves its column unchanged."""
    body, (rows, columns), c_type = cx.body, cx.shape(0)[-2:], cx.type(0).name
    body.line(f"{c_type} *const a = {cx.scratch(cx.type(0))};")
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        body.line(f"int32_t *const pivot = {_at(cx, 2, min(rows, columns))};")
        body.line(f"int32_t *const order = {_at(cx, 3, rows)};")
        emit_interleaved(cx, rows, columns)
        call(cx, "getrf", rows, columns, "a", rows, "(int *)pivot", is_complex=True)
        emit_split(cx, "a", [_at(cx, i, rows * columns) for i in range(2)], rows, columns)
        emit_order(cx, rows, min(rows, columns))


@kernel(f"{DOMAIN}::ComplexQR", needs=_needs)
def qr(cx: KernelContext) -> None:
    """Write calls of ``geqrf``, and of ``ungqr`` on a copy of the reflectors, for each matrix."""
    body, (m, n), c_type = cx.body, cx.shape(0)[-2:], cx.type(0).name
    inner, least = cx.output(0).shape[-1], min(m, n)
    body.line(f"{c_type} *const a = {cx.scratch(cx.type(0))}, *const q = a + {2 * m * n};")
    body.line(f"{c_type} *const tau = q + {2 * m * m}, *const work = tau + {2 * least};")
    results = [_at(cx, i, inner * (m if i < 2 else n)) for i in range(4)]
    work_size = BLOCK * max(m, n)
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        emit_interleaved(cx, m, n)
        call(cx, "geqrf", m, n, "a", m, "tau", "work", work_size, is_complex=True)
        body.line(f"memcpy(q, a, {2 * m * least * cx.type(0).size});")
        with body.loops(("i", "j"), (inner, n)):
            for part, result in enumerate(results[2:]):
                upper = f"i {'<' if part else '<='} j"
                body.line(f"({result})[i * {n} + j] = {upper} ? a[2 * (j * {m} + i) + {part}] : 0;")
        call(cx, "ungqr", m, inner, least, "q", m, "tau", "work", work_size, is_complex=True)
        emit_split(cx, "q", results[:2], m, inner)


SOLVE = "int, int, int, int, int, int, int, const void *, const void *, int, void *, int"


@kernel(f"{DOMAIN}::ComplexTriangularSolve", needs=_needs_of_systems)
def triangular_solve(cx: KernelContext) -> None:
    """Write the solution by recursive halves or by ``trsm``; a zero on the
    diagonal is divided by."""
    body, order, (rows, columns), c_type = (
        cx.body,
        cx.shape(0)[-1],
        cx.shape(2)[-2:],
        cx.type(0).name,
    )
    by_halves = systems_by_halves.is_worth(order, columns, left_side=bool(cx.int("left_side")))
    sign = "-" if cx.int("conjugate_a") else ""
    body.line(f"{c_type} *const a = {cx.scratch(cx.type(0))}, *const x = a + {2 * order * order};")
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        _emit_pairs(cx, "a", 0, order * order, sign)
        _emit_pairs(cx, "x", 2, rows * columns)
        if by_halves:
            systems_by_halves.emit(cx, "a", "x", order, columns, is_complex=True)
        else:
            _emit_trsm(cx, order, rows, columns)
        with body.loop("i", rows * columns):
            for part in range(2):
                body.line(f"{cx.output(part).name}[b * {rows * columns} + i] = x[2 * i + {part}];")


def _emit_trsm(cx: KernelContext, order: int, rows: int, columns: int) -> None:
    """Write the call of ``trsm`` for the matrix ``a`` and the right side ``x``."""
    name = f"{PREFIX}{letter(cx, is_complex=True)}trsm"
    function = cx.call(name, f"static void (*{name})({SOLVE});\n")
    arguments = f"{triangular_flags(cx)}, {rows}, {columns}, one, a, {order}, x, {columns}"
    cx.body.line(f"const {cx.type(0).name} one[2] = {{1, 0}};")
    cx.body.line(f"{function}({arguments});")


@kernel(f"{DOMAIN}::ComplexEigh", needs=_needs)
def eigh(cx: KernelContext) -> None:
    """Write a call of ``heevd`` for each matrix; a triangle with non-finite elements gives NaN."""
    size, body, c_type = cx.shape(0)[-1], cx.body, cx.type(0).name
    lower = bool(cx.int("lower"))
    numbers, reals, integers = _work("ComplexEigh", size, size)
    body.line(f"{c_type} *const a = {cx.scratch(cx.type(0))}, *const work = a + {2 * size * size};")
    body.line(f"{c_type} *const reals = work + {2 * numbers};")
    vectors, values = [_at(cx, i, size * size) for i in range(2)], _at(cx, 2, size)
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        emit_interleaved(cx, size, size, "lower" if lower else "upper")
        with body.block(f"if (!{finite(cx, 'a', 2 * size * size)})"):
            fill_nan(cx, [*((each, size * size) for each in vectors), (values, size)])
            body.line("continue;")
        int_memory = f"(int *)(reals + {reals})"
        arguments = ('"V"', '"L"' if lower else '"U"', size, "a", size, values)
        call(
            cx,
            "heevd",
            *arguments,
            "work",
            numbers,
            "reals",
            reals,
            int_memory,
            integers,
            is_complex=True,
        )
        cx.fail_if("info != 0")
        emit_split(cx, "a", vectors, size, size)


@kernel(f"{DOMAIN}::ComplexSVD", needs=_needs)
def svd(cx: KernelContext) -> None:
    """Write a call of ``gesdd`` for each matrix; a matrix with non-finite elements gives NaN."""
    rows, columns = cx.shape(0)[-2:]
    least, full = min(rows, columns), bool(cx.int("full_matrices"))
    left, right = (rows, columns) if full else (least, least)
    counts = (least, rows * left, rows * left, right * columns, right * columns)
    results = [_at(cx, i, count) for i, count in enumerate(counts)]
    left_at, right_at = f"a + {2 * rows * columns}", f"a + {2 * (rows * columns + rows * rows)}"
    used = 2 * (rows * columns + rows * rows + columns * columns)
    with _emit_gesdd(cx, '"A"' if full else '"S"', (left_at, rows, right_at, right), used, counts):
        emit_split(cx, left_at, results[1:3], rows, left)
        emit_split(cx, right_at, results[3:], right, columns)


@kernel(f"{DOMAIN}::ComplexSingularValues", needs=_needs)
def singular_values(cx: KernelContext) -> None:
    """Write a call of ``gesdd`` without vectors for each matrix."""
    rows, columns = cx.shape(0)[-2:]
    vectors, counts = ("a", rows, "a", columns), (min(rows, columns),)
    with _emit_gesdd(cx, '"N"', vectors, 2 * rows * columns, counts):
        pass


@contextmanager
def _emit_gesdd(
    cx: KernelContext,
    job: str,
    vectors: tuple[str, int, str, int],
    used: int,
    counts: Sequence[int],
) -> Iterator[None]:
    """Write a call of ``gesdd`` for each matrix, before the caller's C in the same loop.

    ``vectors`` are both matrices of vectors with their leading dimensions. ``used`` is the number
    of elements that matrices take before the workspace. ``counts`` are the elements of each output.
    """
    body, (rows, columns), c_type = cx.body, cx.shape(0)[-2:], cx.type(0).name
    numbers, reals, _ = _work(cx.instruction.op.rpartition("::")[2], rows, columns)
    body.line(f"{c_type} *const a = {cx.scratch(cx.type(0))}, *const work = a + {used};")
    body.line(f"{c_type} *const reals = work + {2 * numbers};")
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        emit_interleaved(cx, rows, columns)
        with body.block(f"if (!{finite(cx, 'a', 2 * rows * columns)})"):
            fill_nan(cx, [(_at(cx, i, count), count) for i, count in enumerate(counts)])
            body.line("continue;")
        arguments = (job, rows, columns, "a", rows, _at(cx, 0, counts[0]), *vectors)
        integers = f"(int *)(reals + {reals})"
        name = "gesdd" if len(counts) > 1 else "gesdd_values"
        call(cx, name, *arguments, "work", numbers, "reals", integers, is_complex=True)
        cx.fail_if("info != 0")
        yield
