"""Directives that rewrite an algorithm to one with the same result and less work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from smelt.loops.algorithm import (
    Algorithm,
    Apply,
    Axis,
    Buffer,
    Expression,
    Load,
    Reduce,
    Stage,
    at_place,
    reductions,
    replaced,
    substituted,
)
from smelt.loops.schedule import Doubling, Schedule, Separate, Unroll


def rewritten(algorithm: Algorithm, schedule: Schedule) -> Algorithm:
    """Return the algorithm after the directives of the schedule that replace it."""
    for directive in schedule:
        if isinstance(directive, Separate):
            algorithm = _separated(algorithm, directive)
        elif isinstance(directive, Doubling):
            algorithm = _doubled(algorithm, directive)
        elif isinstance(directive, Unroll):
            algorithm = _unrolled(algorithm, directive)
    return algorithm


def _reduction_along(algorithm: Algorithm, along: str) -> tuple[Reduce, Axis, Load]:
    """Return the result's reduction, its axis ``along``, and the read that is its body."""
    reduction = next(reductions(algorithm.result.value))
    assert isinstance(reduction.body, Load)
    return reduction, next(axis for axis in reduction.axes if axis.name == along), reduction.body


def _separated(algorithm: Algorithm, directive: Separate) -> Algorithm:
    """Return the algorithm with a stage that reduces over all axes but one, which the result
    reduces.

    For a window, the stage combines the rows, and the result the columns. The stage has one element
    for each column that some result reads.
    """
    result = algorithm.result
    reduction, along, load = _reduction_along(algorithm, directive.along)
    last, index = result.axes[-1], load.index[-1]
    begin = substituted(index, {last.name: 0, along.name: 0})
    steps = index - begin
    extent = substituted(steps, {each.name: each.extent - 1 for each in (last, along)}) + 1
    columns = Axis(directive.axis, extent)
    axes = (*result.axes[:-1], columns)
    stage = Buffer(directive.name, load.buffer.type, tuple(axis.extent for axis in axes))
    others = tuple(axis for axis in reduction.axes if axis != along)
    inner = replace(load, index=(*load.index[:-1], columns.at + begin))
    outer = Load(stage, (*(axis.at for axis in result.axes[:-1]), steps))
    value = replaced(result.value, reduction, Reduce(reduction.monoid, (along,), outer))
    first = Stage(stage, axes, Reduce(reduction.monoid, others, inner))
    return algorithm.with_stage(first, replace(result, value=value))


def _unrolled(algorithm: Algorithm, directive: Unroll) -> Algorithm:
    """Return the algorithm with the reduction along an axis as one expression."""
    whole = next(reductions(algorithm.result.value))
    along = next(axis for axis in whole.axes if axis.name == directive.along)
    assert isinstance(along.extent, int)
    places = range(along.extent)
    value = replaced(algorithm.result.value, whole, _chain(whole, whole.body, along, places))
    return Algorithm((*algorithm.stages[:-1], replace(algorithm.result, value=value)))


def _doubled(algorithm: Algorithm, directive: Doubling) -> Algorithm:
    """Return the algorithm with passes over a stage that combine ever wider windows of columns.

    A pass combines two or three windows of the pass before, which may overlap: window sizes are
    1, 3, 9, ... This needs a monoid such as the maximum, in which an element may count twice.
    """
    reduction, along, load = _reduction_along(algorithm, directive.along)
    assert reduction.monoid.repeats
    assert isinstance(along.extent, int)
    *passes, last = _passes(along.extent)
    columns, stages = algorithm.result.axes[-1], list(algorithm.stages[:-1])
    made = next(stage for stage in stages if stage.to.name == directive.name)
    at_stage = {columns.name: made.axes[-1].at}
    inner = replace(load, index=tuple(substituted(each, at_stage) for each in load.index))
    stages += [replace(made, value=_chain(reduction, inner, along, places)) for places in passes]
    value = replaced(algorithm.result.value, reduction, _chain(reduction, load, along, last))
    return Algorithm((*stages, replace(algorithm.result, value=value)))


def _chain(
    whole: Reduce, body: Expression, along: Axis, places: range | tuple[int, ...]
) -> Expression:
    """Return the expression that combines ``body`` at the indices ``places`` of the axis
    ``along``.
    """
    values = [at_place(body, {along.name: place}) for place in places]
    chain = values[0]
    for value in values[1:]:
        chain = Apply(whole.monoid.combine, (value, chain))
    return chain


def _passes(extent: int) -> Iterator[tuple[int, ...]]:
    """Yield the first columns of the windows that each pass combines.

    ``(0, 1, 2)``, then ``(0, 3, 6)`` combine 9 columns. The last window has ``extent`` elements.
    """
    if extent == 1:
        yield (0,)
    size = 1
    while size < extent:
        wide = min(3 * size, extent)
        yield (0, wide - size) if wide <= 2 * size else (0, size, wide - size)
        size = wide
