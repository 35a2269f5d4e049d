"""Make a nest of an algorithm and a schedule.

Loops run over the axes of the result. A stage before the result is computed in the loop that the
schedule names, and only the region that the loops inside read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from smelt.loops import nest
from smelt.loops.algorithm import Algorithm, Axis, Buffer, Stage, loads, reductions, substituted
from smelt.loops.element import FOUND, Element, declared, range_inside
from smelt.loops.in_memory import start_in_memory, sum_in_memory
from smelt.loops.operators import LANES, ONE
from smelt.loops.partial import rows_in_parts
from smelt.loops.regions import Range, regions_of
from smelt.loops.registers import block, broadcast_factors
from smelt.loops.rewrites import rewritten
from smelt.loops.schedule import (
    MOST_LANES,
    VECTOR,
    ComputeAt,
    InLanes,
    Outermost,
    Partial,
    Registers,
    RowFunction,
    Schedule,
    Share,
    Split,
    Vector,
)
from smelt.program.run_sizes import Dim, Size, highest, larger, lowest, same, smaller


def lower(algorithm: Algorithm, schedule: Schedule = ()) -> tuple[nest.Statement, ...]:
    """Return the nest that computes ``algorithm`` as ``schedule`` says."""
    return _Lowering(algorithm, schedule).statements()


@dataclass
class _Lowering:
    """The state of one lowering: ``ranges`` has start and end of each axis of the result whose loop
    is not written yet; results along ``block`` are all computed at once in registers."""

    source: Algorithm
    schedule: Schedule
    ranges: dict[str, Range] = field(default_factory=dict)
    block: Axis | None = None

    def __post_init__(self) -> None:
        self.algorithm = rewritten(self.source, self.schedule)
        self.splits = {each.axis: each.by for each in self.schedule if isinstance(each, Split)}
        self.vectors = {each.name: each for each in self.schedule if isinstance(each, Vector)}
        self.sizes = {each.name: each.size for each in self.schedule if isinstance(each, ComputeAt)}
        self.registers = {each.axis for each in self.schedule if isinstance(each, Registers)}
        self.outermost = {each.name for each in self.schedule if isinstance(each, Outermost)}
        self.shared = {each.axis for each in self.schedule if isinstance(each, Share)}
        parts = [
            each for each in self.schedule if isinstance(each, Partial | RowFunction | InLanes)
        ]
        self.element = Element(self.source.result.to.type, records_nan=bool(self.vectors))
        self.element.directives = {each.along: each for each in parts}
        partials = [each for each in parts if isinstance(each, Partial) and each.rows_axis]
        self.rows_at_once = {each.rows_axis: each.count for each in partials}

    def statements(self, opened: int = 0) -> tuple[nest.Statement, ...]:
        """Return the whole nest, inside of loops over the first ``opened`` axes of the result."""
        result, before = self.algorithm.result, list[nest.Statement]()
        axes = result.axes[opened:]
        self.ranges = {axis.name: (0, axis.extent) for axis in axes}
        reads = [*loads(self.source.result.value)]
        reads += result.epilogue.operands if result.epilogue is not None else ()
        for buffer in (result.to, *(load.buffer for load in reads)):
            if buffer.name not in {*self.element.stored, *self.sizes}:
                before += self._declare_strides(buffer, (0,) * len(buffer.shape))
        for axis, by in self.splits.items():
            more, self.splits[axis] = declared(f"{axis}_by", by)
            before += more
        before += [*self._computed_at(""), *self.element.bounds_at(result, self.ranges)]
        if self.registers:
            self.element.along = axes[-1].name
            before += broadcast_factors(self.element, result)
        after = self.element.epilogue_loop(result) if result.to.name in self.vectors else ()
        return (*before, *self._loops(result, axes), *after)

    def _loops(self, stage: Stage, axes: tuple[Axis, ...]) -> list[nest.Statement]:
        """Return the loops over ``axes`` of the result, with the stages computed in them."""
        if not axes:
            return self._element(stage, ONE)
        first, *inner = axes
        if first.name in self.registers:
            self.block = first
            return self._loops(stage, tuple(inner))
        by = self.splits.get(first.name)
        if by is None:
            return self._loop(stage, first, tuple(inner))
        block = [] if same(by, first.extent) else self._block(first, by)
        body = [*block, *self._computed_at(first.name), *self._loop(stage, first, tuple(inner))]
        if same(by, first.extent):
            return body
        return [nest.For(f"{first.name}0", 0, first.extent, tuple(body), by)]

    def _loop(self, stage: Stage, axis: Axis, rest: tuple[Axis, ...]) -> list[nest.Statement]:
        """Return the loop over an axis, or over a block of it."""
        start, stop = self.ranges[axis.name]
        if not rest:
            return self._innermost(stage, axis, (start, stop))
        del self.ranges[axis.name]
        body = [*self.element.bounds_at(stage, self.ranges, axis.name)]
        body += self._computed_at(axis.name) if axis.name not in self.splits else []
        body += self._loops(stage, rest)
        body = self._with_rerun(body) if axis is stage.axes[0] else body
        return [nest.For(axis.name, start, stop, tuple(body), shared=axis.name in self.shared)]

    def _block(self, axis: Axis, by: Dim) -> list[nest.Statement]:
        """Return the declaration of the end of a block of ``axis``; set its range to the block."""
        high = highest(axis.extent)
        start = Size.named(f"{axis.name}0", 0, max(high - 1, 0))
        statements, stop = list[nest.Statement](), start + by
        if not isinstance(axis.extent, int) or not isinstance(by, int) or axis.extent % by:
            statements, stop = declared(f"{axis.name}_end", smaller(stop, axis.extent))
        self.ranges[axis.name] = start, stop
        return statements

    def _with_rerun(self, body: list[nest.Statement]) -> list[nest.Statement]:
        """Return the ``body`` of the outermost loop; if its vectors met NaN, which they may lose,
        the iteration is computed again without vectors."""
        flags = tuple((name, width) for width, name in self.element.nan_flags.items())
        if not flags:
            return body
        lowering = _Lowering(self.source, ())
        lowering.element.stored = self.element.stored
        slow = lowering.statements(opened=1)
        return [
            *(nest.RecordNaN(name, width=width) for name, width in flags),
            *body,
            nest.IfNaN(flags, slow),
        ]

    # Stages

    def _computed_at(self, axis: str) -> list[nest.Statement]:
        """Return the stages that are computed in the loop over ``axis``."""
        statements: list[nest.Statement] = []
        for place in self.schedule:
            if isinstance(place, ComputeAt) and place.axis == axis:
                stages = [each for each in self.algorithm.stages if each.to.name == place.name]
                regions = regions_of(self.algorithm.result, stages, self.ranges)
                sizes = tuple(high - low for low, high in regions[0])
                first, to = tuple(low for low, _ in regions[0]), stages[0].to
                if place.size:
                    statements += self._declare_strides(replace(to, shape=sizes), first)
                    aligned = place.name in self.vectors
                    statements.append(nest.Array(to.name, to.type, place.size, aligned))
                else:
                    statements += self._declare_strides(to, (0,) * len(first))
                statements += self._stage(stages[0], regions[0])
                for stage in stages[1:]:
                    statements += self._in_place(stage, math.prod(sizes))
        return statements

    def _declare_strides(self, buffer: Buffer, first: tuple[Dim, ...]) -> list[nest.Statement]:
        """Return the declarations of the run-time strides of ``buffer``, and note all strides; the
        array begins at index ``first``."""
        statements, strides = list[nest.Statement](), list(buffer.strides)
        for dim, stride in enumerate(strides):
            is_variable = isinstance(stride, Size) and str(stride) in stride.atoms
            if not is_variable and not same(buffer.shape[dim], 1):
                more, strides[dim] = declared(f"{buffer.name}_{dim}", stride)
                statements += more
        self.element.stored[buffer.name] = (first, tuple(strides))
        return statements

    def _stage(self, stage: Stage, region: list[Range]) -> list[nest.Statement]:
        """Return the loops that compute ``region`` of a stage, a range of indices per axis."""
        axes = [each for each in zip(stage.axes, region, strict=True) if not _is_open(*each)]
        unopened = [axis.name for axis, _ in axes]
        statements = self.element.bounds_at(stage, unopened)
        if not axes:
            return [*statements, *self._element(stage, ONE)]
        levels = []
        for axis, range_ in axes[:-1]:
            unopened.remove(axis.name)
            levels.append((axis.name, range_, self.element.bounds_at(stage, unopened, axis.name)))
        body = self._innermost(stage, *axes[-1])
        for name, (start, stop), bounds in reversed(levels):
            body = [nest.For(name, start, stop, (*bounds, *body))]
        return [*statements, *body]

    def _in_place(self, stage: Stage, total: Dim) -> list[nest.Statement]:
        """Return the loop in which ``stage`` overwrites its buffer: one loop over all rows, which
        follow one another in memory and have ``total`` elements."""
        at = self.element.offset(stage.to, [axis.at for axis in stage.axes])
        position = Size.named("i", 0, highest(total))
        self.element.along, self.element.flat = "i", at - position
        body = self._element(stage, LANES)
        self.element.flat = 0
        return [nest.For("i", 0, total, tuple(body), VECTOR)]

    # Innermost loops

    def _innermost(self, stage: Stage, axis: Axis, range_: Range) -> list[nest.Statement]:
        """Return the innermost loop, over the part of the range that reads inside of buffers.

        Elsewhere the identity is the result: results in memory start as the identity everywhere.
        """
        (start, stop), name = range_, stage.to.name
        if axis.name in self.rows_at_once:
            reduce = next(reductions(stage.value))
            before, stage = rows_in_parts(self.element, stage, reduce, self.rows_at_once[axis.name])
            return [*before, nest.For(axis.name, start, stop, tuple(self._element(stage, ONE)))]
        low, high, is_vector = *range_inside(stage, axis.name, start, stop), name in self.vectors
        before, low = declared(f"{axis.name}_low", low) if not same(low, start) else ([], low)
        more, high = declared(f"{axis.name}_high", high) if not same(high, stop) else ([], high)
        statements, after = [*before, *more], list[nest.Statement]()
        assert stage.epilogue is None or same((low, high), range_)
        if name in self.outermost or (name in self.sizes and name not in self.vectors):
            if name in self.outermost or not same((low, high), range_):
                # The identity everywhere is short C, and a constant number of steps if it can be.
                is_constant = name in self.sizes and isinstance(axis.extent, int)
                start_range = (start, start + self.sizes[name]) if is_constant else range_
                statements.append(start_in_memory(self.element, stage, axis, start_range))
        else:
            if not same(low, start):
                before_low = (start, smaller(low, stop))
                statements.append(start_in_memory(self.element, stage, axis, before_low, is_vector))
            if not same(high, stop):
                from_high = (larger(high, start), stop)
                after = [start_in_memory(self.element, stage, axis, from_high, is_vector)]
        if name in self.outermost:
            range_, reread = (low, high), name in self.sizes
            return [*statements, *sum_in_memory(self.element, stage, axis, range_, reread)]
        return [*statements, *self._elements(stage, axis, low, high), *after]

    def _elements(self, stage: Stage, axis: Axis, low: Dim, high: Dim) -> list[nest.Statement]:
        """Return the loop over elements of a stage, in vectors if it has them."""
        vector, n = self.vectors.get(stage.to.name), high - low
        self.element.along = axis.name
        if vector is None:
            body = [*self.element.bounds_at(stage, (), axis.name), *self._element(stage, ONE)]
            return [nest.For(axis.name, low, high, tuple(body), shared=axis.name in self.shared)]
        if vector.beyond:
            body = self._element(stage, LANES)
            return [nest.For(axis.name, low, high, tuple(body), VECTOR)]
        if lowest(n) >= MOST_LANES:
            return self._overlapping(stage, axis, low, high)
        short = self._short_row(stage, axis, low, high)
        if highest(n) < lowest(VECTOR):
            return short
        whole = self._overlapping(stage, axis, low, high)
        return [nest.If(f"{n} >= {LANES}", tuple(whole), tuple(short))]

    def _overlapping(self, stage: Stage, axis: Axis, low: Dim, high: Dim) -> list[nest.Statement]:
        """Return the loop in vectors; the last, at ``high - LANES``, overlaps the one before."""
        lanes, at = VECTOR, Size.named(f"{axis.name}_at", 0, highest(high))
        index = nest.Index(axis.name, smaller(at, high - lanes))
        body = (index, *self._element(stage, LANES))
        return [nest.For(f"{axis.name}_at", low, high, body, lanes)]

    def _short_row(self, stage: Stage, axis: Axis, low: Dim, high: Dim) -> list[nest.Statement]:
        """Return one vector if the buffer goes on behind the row, or else the row's elements."""
        # Later rows overwrite the elements that the vector stores behind the row.
        (load,) = loads(stage.value)
        last_indices = {name: end - 1 for name, (_, end) in self.element.bounds.items()}
        at = self.element.offset(load.buffer, load.index)
        end = substituted(at, {**last_indices, axis.name: low}) + VECTOR
        vector = (nest.Index(axis.name, low), *self._element(stage, LANES))
        elements = nest.For(axis.name, low, high, tuple(self._element(stage, ONE)))
        return [nest.If(f"{end} <= {math.prod(load.buffer.shape)}", vector, (elements,))]

    def _element(self, stage: Stage, width: str) -> list[nest.Statement]:
        """Return the statements that compute and store an element, or as many as ``width``."""
        if self.block is not None:
            return block(self.element, stage, self.block)
        statements, value = self.element.value(stage.value, width)
        vector, room = self.vectors.get(stage.to.name), None
        if vector is not None and vector.beyond:
            statements, value = self.element.as_variable(statements, value)
            room = self._elements_to_end(stage)
        statements += self.element.store(stage, value, width, room=room)
        if stage.places is not None:
            at = self.element.stored_at(stage)
            found = Size.named(FOUND, 0, highest(math.prod(stage.to.shape)))
            place = nest.Constant(found, stage.places.type)
            statements.append(nest.Store(stage.places.name, at, place, stage.places.type))
        return statements

    def _elements_to_end(self, stage: Stage) -> Dim:
        """Return the number of elements to the result's end: a vector may store so many, because
        later stores overwrite those behind the row."""
        end = [stage.axes[0].extent, *(0 for _ in stage.axes[1:])]
        return self.element.offset(stage.to, end) - self.element.stored_at(stage)


def _is_open(axis: Axis, range_: Range) -> bool:
    """True if ``range_`` is a single index: the variable of a loop that is already written."""
    return same(range_[0], axis.at) and same(range_[1] - range_[0], 1)
