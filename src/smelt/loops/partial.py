"""Reductions whose innermost loop has several partial results, or is a function of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.loops import nest
from smelt.loops.algorithm import Axis, Buffer, Load, Reduce, Stage, at_place, replaced
from smelt.loops.operators import ONE
from smelt.loops.schedule import Partial, RowFunction
from smelt.program.run_sizes import Dim, Size, highest, same

if TYPE_CHECKING:
    from smelt.loops.element import Element

LANE = "lane"
"""The array of partial results."""


def reduced_in_parts(
    element: Element, reduce: Reduce, directive: Partial | RowFunction, total: nest.Name
) -> list[nest.Statement]:
    """Return the loops of a reduction into ``total``, of which ``directive`` says the innermost."""
    outer, inner = reduce.axes[:-1], reduce.axes[-1]
    if isinstance(directive, RowFunction):
        load = at_place(reduce.body, {inner.name: 0})
        assert isinstance(load, Load)
        at = element.offset(load.buffer, load.index)
        row = nest.Row(directive.function, load.buffer.name, at, inner.extent, load.buffer.type)
        statements, value = element.named([], row)
        return element.loops(outer, [*statements, _combined(element, reduce, value, total)])
    start, type_ = _start(element, reduce, directive.count), element.type
    fill = _fill(element, reduce, directive.count, inner.name, inner.extent)
    joined = _joined(element, reduce, directive.count, 1, unrolled=directive.unrolled)
    first = nest.Read(LANE, 0, type_)
    if directive.around:
        fill = element.loops(outer, fill)
        return [*start, *fill, *joined, nest.Assign(total.name, first)]
    end = _combined(element, reduce, first, total)
    return element.loops(outer, [*start, *fill, *joined, end])


def rows_in_parts(
    element: Element, stage: Stage, reduce: Reduce, count: int
) -> tuple[list[nest.Statement], Stage]:
    """Return the loops of a reduction of short neighboring rows, of which several are read at once,
    and the stage that reads the combined row."""
    (*outer, inner), last = reduce.axes, stage.axes[-1]
    whole = Reduce(reduce.monoid, (), at_place(reduce.body, {inner.name: 0}))
    fill = _fill(element, whole, count, last.name, inner.extent * last.extent)
    assert isinstance(last.extent, int)
    lane = Load(Buffer(LANE, element.type, (count,)), (last.at,))
    statements = [
        *_start(element, reduce, count),
        *element.loops(tuple(outer), fill),
        *_joined(element, reduce, count, last.extent, unrolled=False),
    ]
    return statements, Stage(stage.to, stage.axes, replaced(stage.value, reduce, lane))


def _combined(
    element: Element, reduce: Reduce, value: nest.Value, total: nest.Name
) -> nest.Statement:
    """Return the statement that combines a value and the result so far."""
    combined = nest.Call(reduce.monoid.in_loop, (value, total), element.type)
    return nest.Assign(total.name, combined)


def _start(element: Element, reduce: Reduce, count: int) -> list[nest.Statement]:
    """Return the declaration of the partial results, and the loop that starts them."""
    start = nest.Constant(reduce.monoid.start(element.type), element.type)
    store = nest.Store(LANE, Axis("j", count).at, start, element.type)
    return [nest.Array(LANE, element.type, count), nest.For("j", 0, count, (store,))]


def _fill(
    element: Element, reduce: Reduce, count: int, name: str, extent: Dim
) -> list[nest.Statement]:
    """Return the loops that combine ``extent`` elements with the partial results in turn."""
    j, type_ = Axis("j", count).at, element.type

    def loop(first: Dim, count: Dim) -> nest.Statement:
        """Return the loop over one element of each partial result."""
        statements, value = element.value(reduce.body, ONE)
        statements, value = element.operand(statements, value, reduce.monoid)
        combined = nest.Call(reduce.monoid.in_loop, (value, nest.Read(LANE, j, type_)), type_)
        store = nest.Store(LANE, j, combined, type_)
        return nest.For("j", 0, count, (nest.Index(name, first + j), *statements, store))

    whole = extent - extent % count
    at = Size.named("i", 0, highest(extent))
    loops: list[nest.Statement] = [nest.For("i", 0, whole, (loop(at, count),), count)]
    return loops if same(whole, extent) else [*loops, loop(whole, extent - whole)]


def _joined(
    element: Element, reduce: Reduce, count: int, left: int, *, unrolled: bool
) -> list[nest.Statement]:
    """Return the loops that combine the partial results by halves, until ``left`` are left."""
    j, type_ = Axis("j", count).at, element.type

    def loop(half: Dim) -> nest.Statement:
        """Return the loop that adds the second half."""
        lanes = (nest.Read(LANE, j + half, type_), nest.Read(LANE, j, type_))
        store = nest.Store(LANE, j, nest.Call(reduce.monoid.in_loop, lanes, type_), type_)
        return nest.For("j", 0, half, (store,))

    steps = (count // left).bit_length() - 1
    if unrolled:
        return [loop(count >> step) for step in range(1, steps + 1)]
    return [nest.Halving("w", count // 2, left, (loop(Size.named("w", left, count // 2)),))]
