"""Softmax and LogSoftmax: the largest element of each row, the sum of exponentials, the results."""

from __future__ import annotations

import math
from typing import cast

from smelt.loops import operators
from smelt.loops.algorithm import Algorithm, Apply, Axis, Buffer, Load, Number, Reduce, Stage
from smelt.loops.lower import lower
from smelt.loops.printer import print_nest
from smelt.loops.schedule import (
    ComputeAt,
    InLanes,
    Outermost,
    Partial,
    RowFunction,
    Schedule,
    Share,
)
from smelt.native.kernels import reduce, softmax_short
from smelt.native.kernels.exponential import SUMS, vector_exponential
from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lane_math import in_lanes
from smelt.program.run_sizes import Dim, ceil_div, highest, same, smaller, zero_if_empty
from smelt.program.storage import Needs

COLUMNS = 64
"""The rows that are computed together if their elements are not contiguous. Their sums and maxima
take half a kilobyte of stack."""


def _in_place(instance: Instance) -> Needs:
    """Return needs by which the result may overwrite the input."""
    return Needs(in_place=(0,))


@kernel("Softmax", "LogSoftmax", needs=_in_place, shared=True)
def softmax(cx: KernelContext) -> None:
    """Write Softmax or LogSoftmax, relative to the largest element of each row, so nothing
    overflows. Rows of floats are computed in vectors where the CPU has them.
    """
    shape, axis, body = cx.input(0).shape, cx.int("axis"), cx.body
    count = shape[axis] if shape else 1
    sizes = math.prod(shape[:axis]), count, math.prod(shape[axis + 1 :])
    if not same(sizes[2], 1):
        print_nest(lower(*columns_of(cx, sizes)), body)
        return
    outer = cast(int, zero_if_empty(sizes[0], count))
    nest = lower(*rows_of(cx, outer, count))
    if cx.type(0).name != "float" or same(count, 1):
        print_nest(nest, body)
        return
    is_short = softmax_short.supports(cx.type(0), count)
    functions_called = [
        "expf",
        *(["logf"] if is_short and cx.instruction.op == "LogSoftmax" else []),
    ]
    functions = [in_lanes(cx, f"{name}(x)").partition("(")[0] for name in functions_called]
    for name in (extreme_of(cx, cx.type(0), ">"), *functions):
        body.line(f"(void){name};")  # clang warns of functions that no code of a CPU uses
    body.line("#if LANES >= 8")
    if is_short:
        softmax_short.emit(cx, outer, count)
    else:
        cx.call("sum_of_lanes", SUMS)
        print_nest(lower(*rows_of(cx, outer, count, vectors=True)), body)
    body.line("#else")
    print_nest(nest, body)
    body.line("#endif")


def rows_of(
    cx: KernelContext, outer: Dim, count: Dim, *, vectors: bool = False
) -> tuple[Algorithm, Schedule]:
    """Return the algorithm of contiguous rows, and the schedule with or without ``vectors``."""
    outer_axis = Axis("o", outer)
    schedule: Schedule = (
        *(ComputeAt(name, "o", 1) for name in ("top", "sum")),
        RowFunction("k", reduce.row_extreme(cx, ">")),
        InLanes("e") if vectors else Partial("e", reduce.LANES),
        Share("o"),
    )
    return _algorithm(cx, (outer_axis,), (), count, operators.LARGEST), schedule


def columns_of(cx: KernelContext, sizes: tuple[int, int, int]) -> tuple[Algorithm, Schedule]:
    """Return the algorithm of rows whose elements are not contiguous, and its schedule.

    ``COLUMNS`` rows are computed together, so each inner loop is over contiguous elements.
    """
    outer, count, inner = sizes
    width = min(inner, COLUMNS) if isinstance(inner, int) else COLUMNS
    outer_axis, block_axis = (
        Axis("o", cast(int, zero_if_empty(outer, count))),
        Axis("b", ceil_div(inner, width)),
    )
    divides = isinstance(inner, int) and inner % width == 0
    column_axis = Axis("j", width if divides else smaller(width, inner - block_axis.at * width))
    shared = cx.body.widest((cast(int, outer_axis.extent), cast(int, block_axis.extent)))
    schedule: Schedule = (
        *(ComputeAt(name, "b", width) for name in ("top", "sum")),
        *(Outermost(name) for name in ("top", "sum")),
        *(Share("ob"[each]) for each in (shared,) if each is not None),
    )
    steps = count * inner, width, inner, 1
    # A NaN after the first element is not found by this maximum, but makes the sum NaN.
    return _algorithm(
        cx, (outer_axis, block_axis), (column_axis,), count, operators.LARGEST_INTEGER, steps
    ), schedule


def _algorithm(
    cx: KernelContext,
    lead: tuple[Axis, ...],
    tail: tuple[Axis, ...],
    count: Dim,
    largest: operators.Monoid,
    steps: tuple[Dim, ...] | None = None,
) -> Algorithm:
    """Return the stages of rows at indices ``lead`` and ``tail``; a row is the dim between them."""
    type_, rows = cx.type(0), (*lead, *tail)
    row = tuple(axis.at for axis in rows)
    extents = (*(axis.extent for axis in lead), *(highest(axis.extent) for axis in tail))
    (maximum_axis, sum_axis, result_axis), lead_rank = (
        (Axis(name, count) for name in "kei"),
        len(lead),
    )
    shape = (*extents[:lead_rank], count, *extents[lead_rank:])
    source, output = (
        Buffer(each.name, type_, shape, steps=steps) for each in (cx.input(0), cx.output())
    )
    top, sum_ = (Buffer(name, type_, extents) for name in ("top", "sum"))

    def at(axis: Axis, buffer: Buffer) -> Load:
        """Return the element of the row at ``axis``: ``x[lead..., axis, tail...]``."""
        return Load(buffer, (*row[:lead_rank], axis.at, *row[lead_rank:]))

    exponential = vector_exponential(cx) if type_.name == "float" else operators.EXPONENTIAL
    differences = (
        Apply(operators.SUBTRACT, (at(axis, source), Load(top, row)))
        for axis in (sum_axis, result_axis)
    )
    raised = Apply(exponential, (next(differences),))
    if cx.instruction.op == "Softmax":
        # The sum is 1 or more, so its inverse is as good a factor.
        total = Reduce(operators.SUM, (sum_axis,), raised, keep=at(sum_axis, output))
        factor = Apply(operators.DIVIDE, (Number(1), total))
        result = Apply(operators.MULTIPLY, (at(result_axis, output), Load(sum_, row)))
    else:
        factor = Apply(operators.LOGARITHM, (Reduce(operators.SUM, (sum_axis,), raised),))
        result = Apply(operators.SUBTRACT, (next(differences), Load(sum_, row)))
    return Algorithm(
        (
            Stage(top, rows, Reduce(largest, (maximum_axis,), at(maximum_axis, source))),
            Stage(sum_, rows, factor),
            Stage(output, (*lead, result_axis, *tail), result),
        )
    )
