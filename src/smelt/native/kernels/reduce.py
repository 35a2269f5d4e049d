"""Reductions over any dims, in few loops.

If the innermost loop reduces floats, there are 16 partial results: they fill vectors, and their
rounding errors grow more slowly than those of one long sum.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from typing import cast

from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import Access, collapse
from smelt.native.kernels.reduction_table import FLOATS, TABLES, Reduction
from smelt.native.types import CType, fill_types
from smelt.program.run_sizes import same, surely_below

LANES = 16


EXTREMES = {"ReduceMax": ">", "ReduceMin": "<"}


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    type_, op = instance.type(0), instance.instruction.op
    if op not in TABLES[type_.kind]:
        return f"{op} takes no {type_.name}"
    if op == "ReduceMean" and type_.kind == "int" and _count(instance) == 0:
        return "the mean of an empty tensor of integers"
    return None


def _count(instance: Instance) -> int:
    """Return the number of elements that are reduced to one."""
    count = 1
    for axis in instance.ints("axes"):
        count *= instance.shape(0)[axis]
    return count


@dataclass(frozen=True, slots=True)
class Loops:
    """A reduction as nested loops: sizes, accesses, and whether each loop is reduced."""

    sizes: tuple[int, ...]
    read: Access
    write: Access
    reduced: tuple[bool, ...]

    def where(self, reduced: bool, until: int | None = None) -> list[int]:
        """Return the loops that are reduced, or those that are kept, among the first ``until``."""
        chosen = range(len(self.sizes))[:until]
        return [i for i in chosen if self.reduced[i] is reduced]


def loops_of(cx: KernelContext) -> Loops:
    """Return the loops of a reduction; adjacent reduced loops, and adjacent kept
    loops, are merged."""
    source, output = cx.input(0), cx.output()
    axes = cx.ints("axes")
    kept_axes = [axis for axis in range(len(source.shape)) if axis not in axes]
    strides = [0] * len(source.shape)  # of the output; 0 along reduced dims
    step = 1
    for axis in reversed(kept_axes):
        strides[axis] = step
        step *= source.shape[axis]
    sizes, (read, write) = collapse(source.shape, (source.access(), output.access(strides)))
    # A kept loop has a stride in the output; a reduced loop has none.
    return Loops(sizes, read, write, tuple(stride == 0 for stride in write.strides))


class Reducer:
    """The C expressions of one reduction of one element type."""

    def __init__(self, cx: KernelContext, reduction: Reduction, count: int) -> None:
        self.type: CType = cx.type(0)
        self.reduction = reduction
        self.count = (
            self.type.literal(count) if isinstance(count, int) else f"({self.type.name}){count}"
        )

    def spelled(self, name: str) -> Reducer:
        """Return this reducer with ``name``, a type of equal size, as the type of its results."""
        other = copy(self)
        other.type = replace(self.type, name=name)
        return other

    @property
    def start(self) -> str:
        """The initial result."""
        named = {"lowest": self.type.lowest(), "highest": self.type.highest()}
        return named.get(self.reduction.start, self.reduction.start)

    def step(self, a: str, v: str) -> str:
        """Return the C that accumulates element ``v`` into the partial result ``a``."""
        return self._fill(self.reduction.step, a, self.element(v))

    def join(self, a: str, b: str) -> str:
        """Return the C that combines two partial results."""
        return self._fill(self.reduction.step, a, b)

    def element(self, v: str) -> str:
        """Return the C of the contribution of element ``v``."""
        return self._fill(self.reduction.element, "", v)

    def final(self, a: str) -> str:
        """Return the C of the result from the partial result ``a``."""
        return self._fill(self.reduction.final, a, "")

    def _fill(self, text: str, a: str, v: str) -> str:
        """Return ``text`` with types and operands filled in."""
        return fill_types(text, self.type).format(a=a, v=v, n=self.count)


@kernel(*sorted(FLOATS), kinds=ANY, refuse=_refuse)
def reduce(cx: KernelContext) -> None:
    """Write a reduction in one of three forms.

    Several short rows of floats at once; whole rows of results, if the innermost dim is kept; or
    one result after the other.
    """
    reducer = Reducer(cx, TABLES[cx.type(0).kind][cx.instruction.op], _count(cx))
    loops = loops_of(cx)
    if reducer.type.kind == "float" and _has_short_rows(loops):
        _emit_short_rows(cx, reducer, loops)
    elif loops.sizes and not loops.reduced[-1] and any(loops.reduced):
        _emit_rows(cx, reducer, loops)
    else:
        _emit_scalars(cx, reducer, loops)


def loop_names(count: int) -> list[str]:
    """Return the loop variables ``i0``, ``i1``, ..."""
    return [f"i{i}" for i in range(count)]


def _emit_rows(cx: KernelContext, reducer: Reducer, loops: Loops) -> None:
    """Write whole rows of results, because the innermost loop is kept.

    Wrapping sums are unsigned in memory: with a conversion in each step, gcc 12.2 computed only the
    last row (4 rows of 3 int64, -O3).

    ```
    for (ptrdiff_t i1 = 0; i1 < 8; ++i1)
        y0[i1] = 0;
    for (ptrdiff_t i0 = 0; i0 < 4; ++i0)
        for (ptrdiff_t i1 = 0; i1 < 8; ++i1)
            y0[i1] = y0[i1] + x0[i0 * 8 + i1];
    ```
    """
    body, names, last = cx.body, loop_names(len(loops.sizes)), len(loops.sizes) - 1
    target, value = loops.write.at(names), loops.read.at(names)
    sum_at, accumulator = target, reducer
    if reducer.type.signed and reducer.type.kind == "int" and "@m" in reducer.reduction.step:
        word = reducer.type.word
        body.line(f"{word} *const sums = ({word} *){loops.write.array};")
        sum_at, accumulator = replace(loops.write, array="sums").at(names), reducer.spelled(word)
    outer, reduced = loops.where(False, last), loops.where(True)

    def row(text: str) -> None:
        """Write a loop over the row with one statement."""
        with body.loop(names[last], loops.sizes[last]):
            body.line(text)

    with body.loops([names[i] for i in outer], [loops.sizes[i] for i in outer]):
        row(f"{target} = {reducer.start};")
        reduced_and_last = [*reduced, last]
        with body.loops(
            [names[i] for i in reduced_and_last], [loops.sizes[i] for i in reduced_and_last]
        ):
            body.line(f"const {reducer.type.name} v = {value};")
            body.line(f"{sum_at} = {accumulator.step(sum_at, 'v')};")
        if reducer.reduction.final != "{a}":
            row(f"{target} = {reducer.final(target)};")


def _has_short_rows(loops: Loops) -> bool:
    """True if contiguous rows, whose length divides ``LANES``, are reduced to one row."""
    if len(loops.sizes) < 2 or loops.reduced[-2:] != (True, False):
        return False
    count, row = loops.sizes[-2:]
    if not (isinstance(cast(object, row), int) and row < LANES and LANES % row == 0):
        return False
    return loops.read.strides[-2:] == (row, 1) and not surely_below(count * row, 2 * LANES)


def _emit_short_rows(cx: KernelContext, reducer: Reducer, loops: Loops) -> None:
    """Write the reduction of rows shorter than ``LANES``, as many at once as fit ``LANES``.

    Such rows are, for instance, the parts of complex numbers.
    """
    body, names = cx.body, loop_names(len(loops.sizes))
    count, row = loops.sizes[-2:]
    kept_loops, reduced_loops = loops.where(False, len(names) - 1), loops.where(True)[:-1]
    with body.loops([names[i] for i in kept_loops], [loops.sizes[i] for i in kept_loops]):
        body.line(f"{reducer.type.name} lane[{LANES}];")
        with body.loop("j", LANES):
            body.line(f"lane[j] = {reducer.start};")
        with body.loops([names[i] for i in reduced_loops], [loops.sizes[i] for i in reduced_loops]):
            _fill_lanes(cx, reducer, count * row, lambda at: loops.read.at([*names[:-2], "0", at]))
        _join_lanes(cx, reducer, row)
        with body.loop("j", row):
            target = loops.write.at([*names[:-1], "j"])
            body.line(f"{target} = {reducer.final('lane[j]')};")


def _emit_scalars(cx: KernelContext, reducer: Reducer, loops: Loops) -> None:
    """Write one result at a time; a long innermost reduced loop has ``LANES`` partial results."""
    body, names, op = cx.body, loop_names(len(loops.sizes)), cx.instruction.op
    kept_loops, reduced_loops = loops.where(False), loops.where(True)
    with body.loops([names[i] for i in kept_loops], [loops.sizes[i] for i in kept_loops]):
        body.line(f"{reducer.type.name} a = {reducer.start};")
        inner = reduced_loops[-1] if reduced_loops else -1
        long = inner >= 0 and not surely_below(loops.sizes[inner], 2 * LANES)
        lanes = reducer.type.kind == "float" and long
        with ExitStack() as stack:
            for i in reduced_loops[:-1] if lanes else reduced_loops:
                stack.enter_context(body.loop(names[i], loops.sizes[i]))
            if lanes and op in EXTREMES and loops.read.strides[inner] == 1:
                row = loops.read.at(["0" if i == inner else name for i, name in enumerate(names)])
                function = extreme_of(cx, reducer.type, EXTREMES[op])
                body.line(
                    f"const {reducer.type.name} v = {function}(&{row}, {loops.sizes[inner]});"
                )
                body.line(f"a = {reducer.join('a', 'v')};")
            elif lanes:
                _emit_lanes(cx, reducer, loops, names, inner)
            else:
                body.line(f"const {reducer.type.name} v = {loops.read.at(names)};")
                body.line(f"a = {reducer.step('a', 'v')};")
        body.line(f"{loops.write.at(names)} = {reducer.final('a')};")


def _emit_lanes(
    cx: KernelContext, reducer: Reducer, loops: Loops, names: list[str], inner: int
) -> None:
    """Write a reduced loop with ``LANES`` partial results, and combine them with ``a``."""
    body = cx.body

    def element(at: str) -> str:
        """Return the C of the element at index ``at`` of the innermost loop."""
        variables = list(names)
        variables[inner] = f"({at})" if loops.read.strides[inner] != 1 else at
        return loops.read.at(variables)

    body.line(f"{reducer.type.name} lane[{LANES}];")
    with body.loop("j", LANES):
        body.line(f"lane[j] = {reducer.start};")
    _fill_lanes(cx, reducer, loops.sizes[inner], element)
    _join_lanes(cx, reducer, 1)
    body.line(f"a = {reducer.join('a', 'lane[0]')};")


def _fill_lanes(
    cx: KernelContext, reducer: Reducer, size: int, element: Callable[[str], str]
) -> None:
    """Write the accumulation of ``size`` elements, element i into lane ``i % LANES``."""
    body, divisible = cx.body, size - size % LANES
    with body.loop("i", divisible, step=LANES), body.loop("j", LANES):
        body.line(f"const {reducer.type.name} v = {element('i + j')};")
        body.line(f"lane[j] = {reducer.step('lane[j]', 'v')};")
    if not same(divisible, size):
        with body.loop("j", size - divisible):
            body.line(f"const {reducer.type.name} v = {element(f'{divisible} + j')};")
            body.line(f"lane[j] = {reducer.step('lane[j]', 'v')};")


def _join_lanes(cx: KernelContext, reducer: Reducer, left: int) -> None:
    """Write the combination of lanes, by halves, until ``left`` lanes remain."""
    body = cx.body
    with body.block(f"for (ptrdiff_t w = {LANES // 2}; w >= {left}; w /= 2)"), body.loop("j", "w"):
        body.line(f"lane[j] = {reducer.join('lane[j]', 'lane[j + w]')};")
