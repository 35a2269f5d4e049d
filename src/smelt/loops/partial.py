"""Reductions whose innermost loop has several partial results, or is a function of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from smelt.loops import nest
from smelt.loops.algorithm import Axis, Buffer, Load, Reduce, Stage, at_place, replaced
from smelt.loops.operators import LANES, LAST_LANES, ONE, SUM_OF_LANES
from smelt.loops.schedule import MOST_LANES, VECTOR, InLanes, Partial, RowFunction
from smelt.program.run_sizes import Dim, Size, highest, lowest, same

if TYPE_CHECKING:
    from smelt.loops.element import Element


def reduced_in_parts(
    element: Element, reduce: Reduce, directive: Partial | RowFunction | InLanes, total: nest.Name
) -> list[nest.Statement]:
    """Return the loops of a reduction into ``total``; ``directive`` chooses the innermost loop.

    - InLanes: a sum in the lanes of vectors.
    - RowFunction: a call per row.
    - Partial: ``count`` partial results, combined after each row, or ``after_all_loops``.
    """
    outer, inner = reduce.axes[:-1], reduce.axes[-1]
    if isinstance(directive, InLanes):
        assert not outer
        return _in_lanes(element, reduce, inner, total)
    if isinstance(directive, RowFunction):
        load = at_place(reduce.body, {inner.name: 0})
        assert isinstance(load, Load)
        at = element.offset(load.buffer, load.index)
        row_result = nest.Row(
            directive.function, load.buffer.name, at, inner.extent, load.buffer.type
        )
        if not outer:
            return [nest.Assign(total.name, row_result)]
        statements, value = element.as_variable([], row_result)
        return element.loops(outer, [*statements, _combined(element, reduce, value, total)])
    start, count = _start(element, reduce, directive.count), directive.count
    first, second = (nest.Read(element.lane, lane, element.type) for lane in (0, 1))
    if directive.after_all_loops:
        fill = [*element.loops(outer, _fill(element, reduce, count, inner))]
        return [*start, *fill, *_joined(element, reduce, count, 1), nest.Assign(total.name, first)]
    row = nest.Name("row") if outer else total
    fill = _fill(element, reduce, count, inner, row)
    combinations = [_combined(element, reduce, lane, row) for lane in (second, first)]
    body = [*start, *fill, *_joined(element, reduce, count, 2), *combinations]
    if outer:
        identity = nest.Constant(reduce.monoid.start(element.type), element.type)
        declared = nest.Declare(row.name, identity, element.type, changes=True)
        body = [declared, *body, _combined(element, reduce, row, total)]
    return element.loops(outer, body)


def rows_in_parts(
    element: Element, stage: Stage, reduce: Reduce, count: int
) -> tuple[list[nest.Statement], Stage]:
    """Return the loops that reduce adjacent short rows together, and the stage that reads them.

    The rows are read as one long row, reduced to ``count`` partial results. The extent of the
    stage's last axis divides ``count``, so partial results of different rows never mix. The stage
    reads the partial result of its own row.
    """
    (*outer, inner), last = reduce.axes, stage.axes[-1]
    start = _start(element, reduce, count)
    of_all_rows = Reduce(reduce.monoid, (), at_place(reduce.body, {inner.name: 0}))
    fill = _fill(element, of_all_rows, count, Axis(last.name, inner.extent * last.extent))
    assert isinstance(last.extent, int)
    lane = Load(Buffer(element.lane, element.type, (count,)), (last.at,))
    statements = [
        *start,
        *element.loops(tuple(outer), fill),
        *_joined(element, reduce, count, last.extent),
    ]
    return statements, Stage(stage.to, stage.axes, replaced(stage.value, reduce, lane))


def _in_lanes(
    element: Element, reduce: Reduce, axis: Axis, total: nest.Name
) -> list[nest.Statement]:
    """Return the loops of a sum along a row in vectors.

    1. Two vectors per iteration are added to ``even`` and ``odd``, then one more vector to
       ``even``.
    2. The remaining elements are the last lanes of a vector that ends with the row. It is computed
       before the first store, because kept elements may overwrite the row.
    3. ``odd`` is added to ``even``, and the lanes of that are added.

    A row that is shorter than a vector has a loop of its own.
    """
    type_, k, extent = element.type, axis.name, axis.extent
    zero, even, odd = nest.Constant(reduce.monoid.start(type_), type_), "even", "odd"
    pairs_end, vectors_end = extent // (2 * VECTOR) * (2 * VECTOR), extent // VECTOR * VECTOR

    def added(value: nest.Value, sums: str) -> nest.Statement:
        """Return the statement that adds a vector."""
        operands = value, nest.Name(sums, LANES)
        return nest.Assign(sums, nest.Call(reduce.monoid.in_loop, operands, type_, LANES))

    def step(at: Dim, sums: str) -> list[nest.Statement]:
        """Return the statements that add the vector at an index."""
        statements, value = element.operand(_at(reduce, {k: at}), LANES)
        return [*statements, added(value, sums)]

    start: list[nest.Statement] = [
        nest.Declare(sums, zero, type_, LANES, changes=True) for sums in (even, odd)
    ]
    element.along, remainder = k, list[nest.Statement]()
    two_steps = (*step(axis.at, even), *step(axis.at + VECTOR, odd))
    loops = [nest.For(k, 0, pairs_end, two_steps, 2 * VECTOR)]
    loops.append(nest.For(k, pairs_end, vectors_end, tuple(step(axis.at, even)), VECTOR))
    if not isinstance(extent, int) or extent % MOST_LANES:
        element.along = "end"
        ending = _at(reduce, {k: Size.named("end", 0, highest(extent))})
        before, end = element.as_variable(*element.value(ending.body, LANES))
        start += [nest.Index("end", extent - VECTOR), *before]
        last_lanes = nest.Call(
            LAST_LANES, (end, nest.Constant(extent - vectors_end, type_)), type_, LANES
        )
        stores = element.kept(ending, end, LANES)
        remainder = [nest.If(f"{extent} > {vectors_end}", (added(last_lanes, odd), *stores))]
    lanes = nest.Call(SUM_OF_LANES, (nest.Name(even, LANES),), type_)
    ending_statements = [added(nest.Name(odd, LANES), even), nest.Assign(total.name, lanes)]
    statements = [*start, *loops, *remainder, *ending_statements]
    if lowest(extent) >= MOST_LANES:
        return statements
    element_statements, value = element.operand(reduce, ONE)
    by_element = element.loops(
        (axis,), [*element_statements, _combined(element, reduce, value, total)]
    )
    return [nest.If(f"{extent} >= {LANES}", tuple(statements), tuple(by_element))]


def _at(reduce: Reduce, places: Mapping[str, Dim]) -> Reduce:
    """Return ``reduce`` with the axes named in ``places`` replaced by these indices."""
    keep = at_place(reduce.keep, places) if reduce.keep is not None else None
    return replace(reduce, body=at_place(reduce.body, places), keep=keep)


def _combined(
    element: Element, reduce: Reduce, value: nest.Value, total: nest.Name
) -> nest.Statement:
    """Return the statement that combines a value and the result so far."""
    combined = nest.Call(reduce.monoid.in_loop, (value, total), element.type)
    return nest.Assign(total.name, combined)


def _start(element: Element, reduce: Reduce, count: int) -> list[nest.Statement]:
    """Return the declaration of the partial results, and the loop that starts them."""
    element.lane = f"lane{element.count}" if element.lane else "lane"
    start = nest.Constant(reduce.monoid.start(element.type), element.type)
    store = nest.Store(element.lane, Axis("j", count).at, start, element.type)
    return [nest.Array(element.lane, element.type, count), nest.For("j", 0, count, (store,))]


def _fill(
    element: Element, reduce: Reduce, count: int, axis: Axis, total: nest.Name | None = None
) -> list[nest.Statement]:
    """Return the loops that combine the elements along ``axis`` with the partial results in turn.

    Element i is combined with partial result i % ``count``. With ``total``, the last elements,
    fewer than ``count``, are combined with ``total`` instead: the vectors that combine the partial
    results next would have to wait for single numbers that were stored last.
    """
    j, type_ = Axis("j", count).at, element.type

    def loop(first: Dim, count: Dim, total: nest.Name | None = None) -> nest.Statement:
        """Return the loop that combines elements ``first`` to ``first + count`` with one partial
        result each, or with ``total``."""
        statements, value = element.operand(reduce, ONE)
        combined = nest.Call(
            reduce.monoid.in_loop, (value, nest.Read(element.lane, j, type_)), type_
        )
        store: nest.Statement = nest.Store(element.lane, j, combined, type_)
        if total is not None:
            store = _combined(element, reduce, value, total)
        return nest.For("j", 0, count, (nest.Index(axis.name, first + j), *statements, store))

    whole = axis.extent - axis.extent % count
    at = Size.named("i", 0, highest(axis.extent))
    loops: list[nest.Statement] = [nest.For("i", 0, whole, (loop(at, count),), count)]
    return loops if same(whole, axis.extent) else [*loops, loop(whole, axis.extent - whole, total)]


def _joined(element: Element, reduce: Reduce, count: int, left: int) -> list[nest.Statement]:
    """Return the loops that combine the partial results by halves, until ``left`` are left."""
    loops, j, type_ = list[nest.Statement](), Axis("j", count).at, element.type
    while count > left:
        count //= 2
        lanes = (nest.Read(element.lane, j + count, type_), nest.Read(element.lane, j, type_))
        store = nest.Store(element.lane, j, nest.Call(reduce.monoid.in_loop, lanes, type_), type_)
        loops.append(nest.For("j", 0, count, (store,)))
    return loops
