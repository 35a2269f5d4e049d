"""Reductions over any dims: one algorithm, and schedules by the order of dims in memory.

If the innermost loop reduces floats, there are 16 partial results: they fill vectors, and their
rounding errors grow more slowly than those of one long sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from smelt.loops.algorithm import Algorithm, Axis, Buffer, Load, Stage
from smelt.loops.lower import lower
from smelt.loops.operators import Operator
from smelt.loops.printer import print_nest
from smelt.loops.schedule import Outermost, Partial, RowFunction, Schedule
from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, FLOAT, KernelContext, kernel
from smelt.native.kernels.nest import Access, collapse, row_major
from smelt.native.kernels.reduction_table import (
    FLOAT_REDUCTIONS,
    LOG_SUM_EXP,
    is_reduction,
    reduced,
)
from smelt.program.run_sizes import Dim, surely_below

LANES = 16
"""The partial results of a row."""

EXTREMES = {"ReduceMax": ">", "ReduceMin": "<"}

WRAPPING = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceSumSquare")


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    type_, op = instance.type(0), instance.instruction.op
    if not is_reduction(op, type_.kind):
        return f"{op} takes no {type_.name}"
    count = math.prod(instance.shape(0)[axis] for axis in instance.ints("axes"))
    if op == "ReduceMean" and type_.kind == "int" and count == 0:
        return "the mean of an empty tensor of integers"
    return None


@dataclass(frozen=True, slots=True)
class Loops:
    """The axes of a reduction, outermost first; ``is_reduced`` has those that are reduced."""

    axes: tuple[Axis, ...]
    is_reduced: tuple[bool, ...]
    reads: tuple[Access, ...]

    def where(self, is_reduced: bool) -> tuple[Axis, ...]:
        """Return the axes that are reduced, or, for False, those that are kept."""
        pairs = zip(self.axes, self.is_reduced, strict=True)
        return tuple(axis for axis, each in pairs if each is is_reduced)

    def loads(self) -> list[Load]:
        """Return the element of each read at the axes."""
        loads = []
        for read in self.reads:
            at: Dim = read.offset
            for axis, stride in zip(self.axes, read.strides, strict=True):
                at += axis.at * stride
            loads.append(Load(Buffer(read.array, read.type, (1,)), (at,)))
        return loads


def loops_of(shape: tuple[int, ...], axes: Sequence[int], reads: Sequence[Access]) -> Loops:
    """Return the loops over ``shape``; adjacent dims are merged if all are reduced, or all kept."""
    strides, step = [0] * len(shape), 1
    for axis in reversed([axis for axis in range(len(shape)) if axis not in axes]):
        strides[axis] = step
        step *= shape[axis]
    # A kept loop has a stride in the result; a reduced loop has none.
    write = replace(reads[0], strides=tuple(strides), offset=0)
    sizes, (write, *merged) = collapse(shape, (write, *reads))
    named = tuple(Axis(f"i{i}", size) for i, size in enumerate(sizes))
    return Loops(named, tuple(stride == 0 for stride in write.strides), tuple(merged))


@kernel(*sorted(FLOAT_REDUCTIONS), kinds=ANY, refuse=_refuse)
def reduce(cx: KernelContext) -> None:
    """Write a reduction by the algorithm and the schedule."""
    print_nest(lower(*reduction_of(cx)), cx.body)


@kernel(LOG_SUM_EXP, kinds=FLOAT)
def log_sum_exp(cx: KernelContext) -> None:
    """Write ``log(sum(exp(x)))`` in two passes over each row."""
    print_nest(lower(*reduction_of(cx)), cx.body)


def reduction_of(cx: KernelContext) -> tuple[Algorithm, Schedule]:
    """Return the algorithm and the schedule of a reduction."""
    return reduction_over(cx, cx.instruction.op, cx.shape(0), cx.ints("axes"))


def reduction_over(
    cx: KernelContext, op: str, shape: tuple[int, ...], axes: Sequence[int], long: int = 2 * LANES
) -> tuple[Algorithm, Schedule]:
    """Return the reduction ``op`` of the first input, read as a tensor of ``shape``.

    Rows of ``long`` floats and more have partial results.
    """
    read, result = arrays(cx, op)
    loops = loops_of(shape, axes, (replace(read, strides=row_major(shape)),))
    (load,) = loops.loads()
    count = math.prod(shape[axis] for axis in axes)
    value = reduced(op, cx.type(0), loops.where(True), load, count)
    kept = loops.where(False)
    to = Buffer(result.array, result.type, tuple(axis.extent for axis in kept))
    return Algorithm((Stage(to, kept, value),)), _schedule(cx, op, loops, to, long)


def arrays(cx: KernelContext, op: str) -> tuple[Access, Access]:
    """Return the operand and the result.

    Wrapping sums are unsigned in memory: with a conversion in each step, gcc 12.2 computed only the
    last row (4 rows of 3 int64, -O3).
    """
    operand, result = cx.input(0).access(), cx.output().access()
    if operand.type.kind != "int" or not operand.type.signed or op not in WRAPPING:
        return operand, result
    word = replace(operand.type, name=operand.type.word, signed=False)
    cx.body.line(f"const {word.name} *const words = (const {word.name} *){operand.array};")
    cx.body.line(f"{word.name} *const sums = ({word.name} *){result.array};")
    return replace(operand, array="words", type=word), replace(result, array="sums", type=word)


def _schedule(cx: KernelContext, op: str, loops: Loops, to: Buffer, long: int) -> Schedule:
    """Return the schedule that suits the innermost axis.

    - kept, but short rows of floats: partial results of the reduced axis around it;
    - kept: whole rows of results at once;
    - reduced, and a long row of floats: a function for extremes, else partial results;
    - others, and log-sum-exp: none.
    """
    type_ = cx.type(0)
    if op == LOG_SUM_EXP or not any(loops.is_reduced):
        return ()
    *_, inner = loops.where(True)
    if type_.kind == "float" and _has_short_rows(loops):
        return (Partial(inner.name, LANES, after_all_loops=True, rows_axis=loops.axes[-1].name),)
    if not loops.is_reduced[-1]:
        return (Outermost(to.name),)
    if type_.kind != "float" or surely_below(inner.extent, long):
        return ()
    if op in EXTREMES:
        return (RowFunction(inner.name, row_extreme(cx, EXTREMES[op])),)
    return (Partial(inner.name, LANES),)


def row_extreme(cx: KernelContext, sign: str) -> Operator:
    """Return the function of the largest (``>``) or smallest (``<``) element of a row."""
    computed = np.max if sign == ">" else np.min
    return Operator("extreme", f"{extreme_of(cx, cx.type(0), sign)}({{0}}, {{1}})", computed)


def _has_short_rows(loops: Loops) -> bool:
    """True if contiguous rows, whose length divides ``LANES``, are reduced to one row."""
    if len(loops.axes) < 2 or loops.is_reduced[-2:] != (True, False):
        return False
    count, row = (axis.extent for axis in loops.axes[-2:])
    if not (isinstance(row, int) and row < LANES and LANES % row == 0):
        return False
    return not surely_below(count * row, 2 * LANES)
