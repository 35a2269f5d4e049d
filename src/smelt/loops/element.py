"""The element of a stage as statements: reads by offset, reductions as loops with a sum."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from smelt.loops import nest
from smelt.loops.algorithm import (
    Apply,
    Axis,
    Buffer,
    Expression,
    Let,
    Load,
    Number,
    Reduce,
    Stage,
    Variable,
    at_place,
    factor,
    loads,
    offset,
    reductions,
    substituted,
)
from smelt.loops.operators import BETTER, LANES, ONE, ElementType
from smelt.loops.partial import reduced_in_parts
from smelt.loops.schedule import InLanes, Partial, RowFunction
from smelt.program.run_sizes import Dim, Size, ceil_div, larger, same, smaller

NAN_FLAGS = {LANES: "odd", ONE: "odd_one"}
"""The C variables that record whether an element was NaN, by width."""

FOUND = "found"
"""The C variable with the index of the largest element."""

STORED = Variable("stored")
"""The value that an epilogue is applied to."""


@dataclass
class Element:
    """Makes the statements that compute one element of a stage; the state while it does.

    - ``records_nan``: record NaN for monoids whose vector form loses NaN.
    - ``nan_flags``: the C variables that record NaN, by width, as far as they are in use.
    - ``stored``: the first index and the strides of each stage that has an array on the stack.
    - ``bounds``: per reduction axis, the first index and the end at which reads are in bounds.
    - ``directives``: the directive for a reduction's innermost loop, by the name of its axis.
    - ``lets``: the values of variables that a ``Let`` or an epilogue has named.
    - ``broadcast``: the vectors with one number in all lanes, by the read of that number.
    - ``lane``: the C array of the partial results of the last reduction with a ``Partial``.
    - ``along``: the innermost axis, along which vectors lie.
    - ``flat``: subtracted from offsets while one loop runs over all rows of a stage.
    - ``count``: the number of variables named so far.
    """

    type: ElementType
    records_nan: bool = False
    stored: dict[str, tuple[tuple[Dim, ...], tuple[Dim, ...]]] = field(default_factory=dict)
    bounds: dict[str, tuple[Dim, Dim]] = field(default_factory=dict)
    nan_flags: dict[str, str] = field(default_factory=dict)
    directives: dict[str, Partial | RowFunction | InLanes] = field(default_factory=dict)
    lets: dict[str, nest.Value] = field(default_factory=dict)
    lane: str = ""
    along: str = ""
    broadcast: dict[Load, nest.Name] = field(default_factory=dict)
    flat: Dim = 0
    count: int = 0

    def offset(self, buffer: Buffer, index: Sequence[Dim]) -> Dim:
        """Return the offset of an element in its array: one on the stack (``stored``) begins at the
        stage's first index, a buffer at 0."""
        first, strides = self.stored.get(buffer.name, ((0,) * len(index), buffer.strides))
        return offset(strides, [at - low for at, low in zip(index, first, strict=True)])

    def stored_at(self, stage: Stage) -> Dim:
        """Return the offset at which the element of a stage is stored."""
        return self.offset(stage.to, [axis.at for axis in stage.axes]) - self.flat

    def store(
        self,
        stage: Stage,
        value: nest.Value,
        width: str = ONE,
        places: Mapping[str, Dim] | None = None,
        room: Dim | None = None,
    ) -> list[nest.Statement]:
        """Return the statements that store one element of a stage, or one vector.

        ``places`` has indices instead of axes; ``room`` elements may be stored at most. An epilogue
        without a form for vectors is left to ``epilogue_loop``.
        """
        at, epilogue = substituted(self.stored_at(stage), places or {}), stage.epilogue
        statements = list[nest.Statement]()
        if epilogue is not None and has_epilogue(stage, width):
            statements, self.lets[STORED.name] = self.as_variable([], value)
            operands = (at_place(load, places or {}) for load in epilogue.operands)
            after, value = self.value(Apply(epilogue.operator, (STORED, *operands)), width)
            statements += after
        return [*statements, nest.Store(stage.to.name, at, value, stage.to.type, width, room)]

    def epilogue_loop(self, stage: Stage) -> list[nest.Statement]:
        """Return the loop that applies the epilogue to a stage after all its vectors were stored;
        empty if each store has applied it.

        The loop includes gaps between rows. Operands must be the same for all elements.
        """
        if has_epilogue(stage, LANES):
            return []
        assert stage.epilogue is not None
        names = {axis.name for axis in stage.axes}
        read = [index for load in stage.epilogue.operands for index in load.index]
        assert not any(_names(index) & names for index in read)
        p = Axis("p", math.prod(stage.to.shape))
        places = dict.fromkeys(names, 0) | {stage.axes[-1].name: p.at}
        at = substituted(self.stored_at(stage), places)
        body = self.store(stage, nest.Read(stage.to.name, at, stage.to.type), ONE, places)
        return [nest.For(p.name, 0, p.extent, tuple(body))]

    def value(self, expression: Expression, width: str) -> tuple[list[nest.Statement], nest.Value]:
        """Return the statements that compute an expression, and its value after them."""
        if isinstance(expression, Load):
            at = self.offset(expression.buffer, expression.index) - self.flat
            step = factor(at, self.along) if width != ONE else 1
            read_width = ONE if same(step, 0) else width
            step = 1 if read_width == ONE else step
            assert isinstance(step, int)
            assert step in (1, 2)
            return [], nest.Read(
                expression.buffer.name, at, expression.buffer.type, read_width, step
            )
        if isinstance(expression, Number):
            return [], nest.Constant(expression.value, self.type)
        if isinstance(expression, Reduce):
            return self._reduction(expression, width)
        if isinstance(expression, Variable):
            return [], self.lets[expression.name]
        if isinstance(expression, Let):
            before, self.lets[expression.name] = self.as_variable(
                *self.value(expression.value, width)
            )
            after, value = self.value(expression.body, width)
            return [*before, *after], value
        statements: list[nest.Statement] = []
        operands: list[nest.Value] = []
        for each in expression.operands:
            operand_statements, value = self.value(each, width)
            operand_statements, value = self.as_variable(operand_statements, value)
            statements += operand_statements
            operands.append(value)
        if expression.operator.lines:
            name = self._fresh("v")
            lines = nest.Lines(name, expression.operator, tuple(operands), self.type)
            return [*statements, lines], nest.Name(name)
        call_width = LANES if any(_width(each) == LANES for each in operands) else ONE
        return statements, nest.Call(expression.operator, tuple(operands), self.type, call_width)

    def as_variable(
        self, statements: list[nest.Statement], value: nest.Value
    ) -> tuple[list[nest.Statement], nest.Value]:
        """Return the statements and a variable for ``value``, and the variable; constants stay."""
        if isinstance(value, nest.Name | nest.Constant):
            return statements, value
        name = nest.Name(self._fresh("v"), _width(value))
        return [*statements, nest.Declare(name.name, value, value.type, name.width)], name

    def operand(self, reduce: Reduce, width: str) -> tuple[list[nest.Statement], nest.Value]:
        """Return the statements that compute the value that a reduction combines, and the value.

        An operator's result that is read once is not named: it stays in one statement with the sum,
        so that compilers may contract a product and a sum.
        """
        statements, value = self.value(reduce.body, width)
        is_read_once = reduce.monoid.in_loop.c.count("{0}") == 1 and reduce.keep is None
        if not (isinstance(value, nest.Call) and is_read_once):
            statements, value = self.as_variable(statements, value)
        return [*statements, *self.kept(reduce, value, width)], value

    def kept(self, reduce: Reduce, value: nest.Value, width: str) -> list[nest.Statement]:
        """Return the store of a reduced element into the buffer of ``reduce.keep``, if given."""
        if reduce.keep is None:
            return []
        assert isinstance(reduce.keep, Load)
        at, to = self.offset(reduce.keep.buffer, reduce.keep.index), reduce.keep.buffer
        return [nest.Store(to.name, at, value, to.type, width)]

    def _fresh(self, stem: str) -> str:
        """Return a new name, the stem and a number: ``v0``, then ``a1`` for the stem ``a``."""
        self.count += 1
        return f"{stem}{self.count - 1}"

    def _reduction(self, reduce: Reduce, width: str) -> tuple[list[nest.Statement], nest.Value]:
        """Return the declaration and the loops of a reduction, and the variable of its result."""
        total = nest.Name(self._fresh("a"), width)
        start: nest.Value = nest.Constant(reduce.monoid.start(self.type), self.type)
        if reduce.start is not None:
            start = self.value(reduce.start, width)[1]
        declared: list[nest.Statement] = [
            nest.Declare(total.name, start, self.type, width, changes=True)
        ]
        directive = self.directives.get(reduce.axes[-1].name) if reduce.axes else None
        if directive is not None:
            return [*declared, *reduced_in_parts(self, reduce, directive, total)], total
        statements, value = self.operand(reduce, width)
        if self.records_nan and reduce.monoid.loses_nan:
            self.nan_flags[width] = NAN_FLAGS[width]
            assert isinstance(value, nest.Name)
            statements.append(nest.RecordNaN(NAN_FLAGS[width], value.name, width))
        if not reduce.axes and reduce.monoid.repeats:
            return statements, value
        if reduce.place is not None:
            declared.append(nest.Index(FOUND, -1, changes=True))
            better = nest.Call(BETTER, (value, total, nest.Name(FOUND)), self.type)
            then = (nest.Assign(total.name, value), nest.Assign(FOUND, reduce.place))
            statements.append(nest.If(better, then))
        else:
            combined = nest.Call(reduce.monoid.in_loop, (value, total), self.type, width)
            statements.append(nest.Assign(total.name, combined))
        return [*declared, *self.loops(reduce.axes, statements)], total

    def loops(self, axes: tuple[Axis, ...], body: list[nest.Statement]) -> list[nest.Statement]:
        """Return ``body`` in loops over the axes of a reduction, between their bounds."""
        for axis in reversed(axes):
            low, high = self.bounds.get(axis.name, (0, axis.extent))
            body = [nest.For(axis.name, low, high, tuple(body))]
        return body

    def bounds_at(
        self, stage: Stage, inner: Collection[str], axis: str = ""
    ) -> list[nest.Statement]:
        """Return the declarations of reduction bounds that are known inside the loop over ``axis``.

        An axis k that reads index ``offset + step * k`` of a dim of ``size`` elements runs from
        ``max(0, ceil(-offset / step))`` to ``min(extent, ceil((size - offset) / step))``: elsewhere
        the index is outside of the buffer. Declared are bounds whose ``offset`` contains ``axis``
        (without an axis: any), but no axis of ``inner``, the loops further inside.
        """
        statements: list[nest.Statement] = []
        for reduce, load in _padded_reads(stage.value):
            for dim, index in enumerate(load.index):
                for each in reduce.axes:
                    step = factor(index, each.name)
                    offset = substituted(index, {each.name: 0})
                    names = _names(offset)
                    if same(step, 0) or names & set(inner) or (axis and axis not in names):
                        continue
                    assert isinstance(step, int)
                    low = larger(0, ceil_div(-offset, step))
                    high = smaller(each.extent, ceil_div(load.buffer.shape[dim] - offset, step))
                    low_declaration, low = declared(f"low_{each.name}", low)
                    high_declaration, high = declared(f"high_{each.name}", high)
                    statements += [*low_declaration, *high_declaration]
                    self.bounds[each.name] = (low, high)
        return statements


def range_inside(stage: Stage, axis: str, start: Dim, stop: Dim) -> tuple[Dim, Dim]:
    """Return the part of ``start`` to ``stop`` of ``axis`` in which all reads are in bounds, but
    for reads along the axis of a reduction; it is empty if its end is below its first index."""
    low, high = start, stop
    for reduce, load in _padded_reads(stage.value):
        reduced = {each.name for each in reduce.axes}
        for size, index in zip(load.buffer.shape, load.index, strict=True):
            if axis in _names(index) and not _names(index) & reduced:
                begin = substituted(index, {axis: 0})
                low, high = larger(low, -begin), smaller(high, size - begin)
    return low, high


def has_epilogue(stage: Stage, width: str) -> bool:
    """True if a store of ``width`` applies the epilogue of a stage, or there is none."""
    return stage.epilogue is None or width in (ONE, *stage.epilogue.operator.vectors)


def declared(name: str, value: Dim) -> tuple[list[nest.Statement], Dim]:
    """Return the declaration of an index, and the index; a number needs no declaration."""
    if not isinstance(value, Size):
        return [], value
    return [nest.Index(name, value)], Size.named(name, value.low, value.high)


def _padded_reads(value: Expression) -> Iterator[tuple[Reduce, Load]]:
    """Yield the reads whose index may be outside of their buffer, with their reductions."""
    for reduce in reductions(value):
        for load in loads(reduce.body):
            if load.buffer.outside:
                yield reduce, load


def _names(index: Dim) -> set[str]:
    """Return the variables in an index."""
    return set(index.atoms) if isinstance(index, Size) else set()


def _width(value: nest.Value) -> str:
    """Return the width of a value."""
    return ONE if isinstance(value, nest.Constant) else value.width
