"""Eigenvalues and Schur forms of general matrices by LAPACK."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from smelt.native.kernels.complex_lapack import emit_interleaved, emit_split
from smelt.native.kernels.complex_lapack import supports as supports_parts
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lapack import BLOCK, DOMAIN, workspace_needs
from smelt.native.kernels.lapack import supports as takes_real
from smelt.native.kernels.lapack_calls import (
    call,
    declare_shift,
    emit_scaling,
    fill_nan,
    finite,
    to_column_major,
)
from smelt.program.storage import Needs

NAMES = ("Schur", "ComplexSchur", "ComplexEig")
WITHOUT = '"N"'
"""LAPACK's letter for vectors that are not computed."""
NO_ORDER = "(int *)NULL"
"""The argument in place of LAPACK's function that selects values to sort first."""


def supports(instance: Instance, name: str) -> bool:
    """True if this file's kernels support the instruction: nonempty matrices with parts of equal
    shape.
    """
    return takes_real(instance, name) if name == "Schur" else supports_parts(instance)


def _needs(instance: Instance) -> Needs:
    """Return the scratch space: three matrices, and at least the workspace that LAPACK's manual
    demands.
    """
    order = instance.shape(0)[-1]
    elements = 2 * (3 * order * order + (4 + BLOCK) * order) + 2 * order
    return Needs(workspace=elements * instance.type(0).size + 4 * (order + 1))


@contextmanager
def _matrix_loop(
    cx: KernelContext, inputs: int, results: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, str, str, str, str]]:
    """Write a loop over matrices ``b``; the caller writes the LAPACK call in it.

    Yields five pointers: to three matrices, the first a column-major copy of ``b``; to a row of
    values; and to a workspace of ``(4 + BLOCK) * order`` numbers. A matrix with non-finite elements
    gives NaN in ``results``, without a call.
    """
    body, order, c_type = cx.body, cx.shape(0)[-1], cx.type(0).name
    size = inputs * order * order
    names = ("a", "left", "right", "values", "work")
    offsets = (0, size, 2 * size, 3 * size, 3 * size + 2 * order)
    body.line(f"{c_type} *const room = {cx.scratch(cx.type(0))};")
    for name, offset in zip(names, offsets, strict=True):
        body.line(f"{c_type} *const {name} = room + {offset};")
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        if inputs == 2:
            emit_interleaved(cx, order, order)
        else:
            to_column_major(cx, f"{cx.input(0).name} + b * {order * order}", "a", order, order)
        with body.block(f"if (!{finite(cx, 'a', size)})"):
            fill_nan(cx, results)
            body.line("continue;")
        yield "a", "left", "right", "values", "work"


def _results(cx: KernelContext, *counts: int) -> list[tuple[str, int]]:
    """Return address and size of matrix ``b`` of each output: ``("y0 + b * 16", 16)``.

    ``counts`` are the elements of one matrix of each output.
    """
    return [(f"{cx.output(i).name} + b * {count}", count) for i, count in enumerate(counts)]


@kernel(f"{DOMAIN}::Schur", needs=_needs)
def schur(cx: KernelContext) -> None:
    """Write a call of ``gees`` for each real matrix."""
    size = cx.shape(0)[-1]
    results, work_size = _results(cx, size * size, size * size), (4 + BLOCK) * size
    with _matrix_loop(cx, 1, results) as (matrix, left, _, values, work):
        integers = f"(int *)({work} + {work_size})"
        arguments = ('"V"', '"N"', NO_ORDER, size, matrix, size, integers)
        call(
            cx,
            "gees",
            *arguments,
            values,
            f"{values} + {size}",
            left,
            size,
            work,
            work_size,
            f"{integers} + 1",
        )
        cx.fail_if("info != 0")
        for each, (result, _) in zip((matrix, left), results, strict=True):
            to_column_major(cx, each, result, size, size)


@kernel(f"{DOMAIN}::ComplexSchur", needs=_needs)
def complex_schur(cx: KernelContext) -> None:
    """Write a call of ``gees`` for each complex matrix."""
    size = cx.shape(0)[-1]
    results, work_size = _results(cx, *((size * size,) * 4)), (2 + BLOCK) * size
    with _matrix_loop(cx, 2, results) as (matrix, left, _, values, work):
        reals = f"{work} + {2 * work_size}"
        integers = f"(int *)({reals} + {size})"
        flags_and_matrix = ('"V"', '"N"', NO_ORDER, size, matrix, size, integers)
        arguments = (values, left, size, work, work_size, reals, f"{integers} + 1")
        call(cx, "gees", *flags_and_matrix, *arguments, is_complex=True)
        cx.fail_if("info != 0")
        for each, parts in ((matrix, results[:2]), (left, results[2:])):
            emit_split(cx, each, [result for result, _ in parts], size, size)


@kernel(f"{DOMAIN}::Eig", needs=workspace_needs)
def eig(cx: KernelContext) -> None:
    """Write a call of ``geev`` for each matrix, scaled; a non-finite matrix gives NaN.

    Only vectors that are read are computed.
    """
    source, body, order = cx.input(0), cx.body, cx.shape(0)[-1]
    scratch, size = cx.scratch(source.type), order * order
    results = [result for result, _ in _results(cx, order, order, *((size,) * 4))]
    values, matrix = results[:2], f"{source.name} + b * {size}"
    left, right, work = (f"{scratch} + {i * size}" for i in range(1, 4))
    with body.loop("b", math.prod(cx.shape(0)[:-2])):
        body.line("int info = 0;")
        with body.block(f"if (!{finite(cx, matrix, size)})"):
            fill_nan(cx, _results(cx, order, order, *((size,) * 4)))
            body.line("continue;")
        to_column_major(cx, matrix, scratch, order, order)
        declare_shift(cx, scratch, size)
        emit_scaling(cx, scratch, size, "-shift")
        arguments = (left, order, right, order, work, (4 + BLOCK) * order)
        call(cx, "geev", *_jobs(cx), order, scratch, order, *values, *arguments)
        cx.fail_if("info != 0")
        for each in values:
            emit_scaling(cx, each, order, "shift")
        body.line(f"const {source.type.name} *const imaginary = {values[1]};")
        for job, real, (re, im) in zip(
            _jobs(cx), (left, right), (results[2:4], results[4:]), strict=True
        ):
            if job == WITHOUT:
                continue
            with body.loops(("j", "i"), (order, order)):
                body.line("const ptrdiff_t first = imaginary[j] < 0 ? j - 1 : j;")
                body.line(f"const {source.type.name} *const v = {real} + first * {order};")
                body.line(f"({re})[i * {order} + j] = v[i];")
                imaginary = f"imaginary[j] < 0 ? -v[{order} + i] : v[{order} + i]"
                body.line(f"({im})[i * {order} + j] = imaginary[j] == 0 ? 0 : {imaginary};")


def _jobs(cx: KernelContext) -> tuple[str, str]:
    """Return LAPACK's letters for the left and the right vectors: V if either part is read."""
    left, right = ('"V"' if cx.is_read(i) or cx.is_read(i + 1) else WITHOUT for i in (2, 4))
    return left, right


@kernel(f"{DOMAIN}::ComplexEig", needs=_needs)
def complex_eig(cx: KernelContext) -> None:
    """Write a call of ``geev`` for each complex matrix, scaled to an ordinary magnitude.

    Only vectors that are read are computed.
    """
    order, body = cx.shape(0)[-1], cx.body
    results, work_size = _results(cx, order, order, *((order * order,) * 4)), (2 + BLOCK) * order
    with _matrix_loop(cx, 2, results) as (matrix, left, right, values, work):
        reals = f"{work} + {2 * work_size}"
        arguments = (
            order,
            matrix,
            order,
            values,
            left,
            order,
            right,
            order,
            work,
            work_size,
            reals,
        )
        declare_shift(cx, matrix, 2 * order * order)
        emit_scaling(cx, matrix, 2 * order * order, "-shift")
        call(cx, "geev", *_jobs(cx), *arguments, is_complex=True)
        cx.fail_if("info != 0")
        emit_scaling(cx, values, 2 * order, "shift")
        with body.loop("i", order):
            for part, (result, _) in enumerate(results[:2]):
                body.line(f"({result})[i] = {values}[2 * i + {part}];")
        for job, each, parts in zip(
            _jobs(cx), (left, right), (results[2:4], results[4:]), strict=True
        ):
            if job != WITHOUT:
                emit_split(cx, each, [result for result, _ in parts], order, order)
