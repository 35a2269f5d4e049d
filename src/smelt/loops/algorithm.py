"""Algorithms: stages, each with an expression that gives one element of its buffer.

An index is a ``Dim`` whose atoms are names of axes, for instance ``h.at * 2 + k.at - 1``. Its
bounds follow from the extents of the axes, and its text is C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from smelt.loops.operators import ElementType, Monoid, Operator
from smelt.program.run_sizes import Dim, Size, highest


@dataclass(frozen=True)
class Axis:
    """A named axis of ``extent`` elements."""

    name: str
    extent: Dim

    @property
    def at(self) -> Dim:
        """The index along the axis, which other indices are computed from."""
        return Size.named(self.name, 0, max(highest(self.extent) - 1, 0))


@dataclass(frozen=True)
class Buffer:
    """An array: the name of its pointer in C, its type and its shape; dense without ``steps``.

    With ``outside``, a read may have an index outside of the shape, as in the padding of a window;
    the reduction around the read skips it.
    """

    name: str
    type: ElementType
    shape: tuple[Dim, ...]
    outside: bool = False
    steps: tuple[Dim, ...] | None = None

    @property
    def strides(self) -> tuple[Dim, ...]:
        """The distances of neighbors along each dim, in elements."""
        if self.steps is not None:
            return self.steps
        return tuple(math.prod(self.shape[dim + 1 :]) for dim in range(len(self.shape)))


@dataclass(frozen=True)
class Load:
    """The element of ``buffer`` at ``index``."""

    buffer: Buffer
    index: tuple[Dim, ...]


@dataclass(frozen=True)
class Number:
    """An index or a size as a number of the result's type, or a constant."""

    value: Dim | float


@dataclass(frozen=True)
class Apply:
    """An operator of ``operands``."""

    operator: Operator
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Reduce:
    """``body`` at all indices of ``axes``, combined by ``monoid``.

    - ``start``: the element that the reduction begins with; without it, the monoid's identity.
    - ``place``: the index to return with the largest element, as in ArgMax; the result is a pair.
    - ``keep``: a Load that says where each element of ``body`` is stored, too.
    """

    monoid: Monoid
    axes: tuple[Axis, ...]
    body: Expression
    place: Dim | None = None
    start: Load | None = None
    keep: Expression | None = None


@dataclass(frozen=True)
class Let:
    """``body``, in which ``Variable(name)`` is ``value``, computed once."""

    name: str
    value: Expression
    body: Expression


@dataclass(frozen=True)
class Variable:
    """The value that ``Let`` has named."""

    name: str


Expression: TypeAlias = Load | Number | Apply | Reduce | Let | Variable


@dataclass(frozen=True)
class Epilogue:
    """A last step of a stage: ``operator`` of the stage's value and of further ``operands``."""

    operator: Operator
    operands: tuple[Load, ...] = ()


@dataclass(frozen=True)
class Stage:
    """The computation of the buffer ``to``: ``value`` at each index of ``axes``, its dims.

    ``places`` is the buffer for the second result of a reduction with a ``place``. Each store
    applies the ``epilogue``.
    """

    to: Buffer
    axes: tuple[Axis, ...]
    value: Expression
    places: Buffer | None = None
    epilogue: Epilogue | None = None


@dataclass(frozen=True)
class Algorithm:
    """Stages in order, the last of which computes the result."""

    stages: tuple[Stage, ...]

    @property
    def result(self) -> Stage:
        """The last stage."""
        return self.stages[-1]

    def with_stage(self, new: Stage, result: Stage) -> Algorithm:
        """Return the algorithm with another result, which reads the stage ``new``."""
        return Algorithm((*self.stages[:-1], new, result))


def reductions(value: Expression) -> Iterator[Reduce]:
    """Yield the reductions in ``value`` that are inside of no other."""
    if isinstance(value, Reduce):
        yield value
    for operand in () if isinstance(value, Reduce) else operands(value):
        yield from reductions(operand)


def operands(value: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an expression is made of; none for a Load, Number or Variable."""
    if isinstance(value, Apply):
        return value.operands
    if isinstance(value, Let):
        return value.value, value.body
    return (value.body,) if isinstance(value, Reduce) else ()


def loads(value: Expression) -> Iterator[Load]:
    """Yield all reads in ``value``."""
    if isinstance(value, Load):
        yield value
    elif isinstance(value, Reduce) and value.start is not None:
        yield value.start
    for operand in operands(value):
        yield from loads(operand)


def replaced(value: Expression, old: Expression, new: Expression) -> Expression:
    """Return ``value`` with ``old`` replaced by ``new``; reductions other than ``old`` are left as
    they are."""
    if value == old:
        return new
    if isinstance(value, Apply):
        return replace(value, operands=tuple(replaced(each, old, new) for each in value.operands))
    return value


def at_place(value: Expression, places: Mapping[str, Dim]) -> Expression:
    """Return ``value``, which has no reduction, with the indices ``places`` for axes by name."""
    if isinstance(value, Load):
        return replace(value, index=tuple(substituted(each, places) for each in value.index))
    if isinstance(value, Apply):
        return replace(value, operands=tuple(at_place(each, places) for each in value.operands))
    return value


def factor(index: Dim, name: str) -> Dim:
    """Return the coefficient of axis ``name`` in ``index``: 2 for h in ``h * 2 + k``.

    ``index`` is a polynomial of degree at most 1 in ``name``; the coefficient may have other atoms.
    """
    if not isinstance(index, Size):
        return 0
    total: Dim = 0
    for atoms, number in index.terms.items():
        if name in atoms:
            other_atoms = list(atoms)
            other_atoms.remove(name)
            total += number * math.prod(
                Size.named(atom, *index.atoms[atom]) for atom in other_atoms
            )
    return total


def substituted(index: Dim, values: Mapping[str, Dim]) -> Dim:
    """Return ``index`` with ``values`` in place of axes, by name; values contain no such axis."""
    for name, value in values.items():
        if isinstance(index, Size) and name in index.atoms:
            index += factor(index, name) * (value - Size.named(name, *index.atoms[name]))
    return index


def offset(strides: Sequence[Dim], index: Sequence[Dim]) -> Dim:
    """Return the offset of the element at ``index``."""
    total: Dim = 0
    for stride, at in zip(strides, index, strict=True):
        total += stride * at
    return total
