"""Nests: the statements that an algorithm and a schedule become, for the printer and the
interpreter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from smelt.loops.operators import ONE, ElementType, Operator
from smelt.program.run_sizes import Dim


@dataclass(frozen=True)
class Name:
    """A variable."""

    name: str
    width: str = ONE


@dataclass(frozen=True)
class Constant:
    """A constant of a type, or an index converted to it."""

    value: Dim | float
    type: ElementType


@dataclass(frozen=True)
class Read:
    """Elements of ``array`` from offset ``at`` on, every ``step``-th of them."""

    array: str
    at: Dim
    type: ElementType
    width: str = ONE
    step: int = 1


@dataclass(frozen=True)
class Call:
    """An operator of values of one width."""

    operator: Operator
    operands: tuple[Value, ...]
    type: ElementType
    width: str = ONE


@dataclass(frozen=True)
class Row:
    """A function of ``count`` neighbors in ``array`` from offset ``at`` on."""

    function: Operator
    array: str
    at: Dim
    count: Dim
    type: ElementType
    width: str = ONE


Value: TypeAlias = Name | Constant | Read | Call | Row


@dataclass(frozen=True)
class For:
    """A loop. ``shared``: its iterations are split among the shards. ``short``: it has too few for
    vectors."""

    name: str
    start: Dim
    stop: Dim
    body: tuple[Statement, ...]
    step: Dim = 1
    shared: bool = False
    short: bool = False


@dataclass(frozen=True)
class If:
    """``then`` if ``condition``, C of integers or a value, is not 0; else ``otherwise``."""

    condition: str | Call
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class When:
    """``then`` for CPUs for which the preprocessor's ``condition`` holds; else ``otherwise``."""

    condition: str
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class Index:
    """Declare the integer ``name``; ``const`` unless it ``changes``."""

    name: str
    value: Dim
    changes: bool = False


@dataclass(frozen=True)
class Declare:
    """Declare a variable of numbers; ``const`` unless it ``changes``."""

    name: str
    value: Value
    type: ElementType
    width: str = ONE
    changes: bool = False


@dataclass(frozen=True)
class Keep:
    """Keep a vector in a register: compilers would read it again for each use."""

    name: str


@dataclass(frozen=True)
class Lines:
    """Declare a variable, the value of an operator that has statements of its own."""

    name: str
    operator: Operator
    operands: tuple[Value, ...]
    type: ElementType


@dataclass(frozen=True)
class Assign:
    """Assign ``value``, a number or an index, to a variable."""

    name: str
    value: Value | Dim


@dataclass(frozen=True)
class Array:
    """Declare an array of ``size`` elements on the stack; ``aligned`` to whole vectors."""

    name: str
    type: ElementType
    size: int
    aligned: bool = False


@dataclass(frozen=True)
class RecordNaN:
    """Record in ``name`` the lanes where ``of`` is NaN; without ``of``, declare ``name`` as 0."""

    name: str
    of: str = ""
    width: str = ONE


@dataclass(frozen=True)
class IfNaN:
    """``then`` if one of ``flags``, pairs of variable and width, has recorded a NaN."""

    flags: tuple[tuple[str, str], ...]
    then: tuple[Statement, ...]


@dataclass(frozen=True)
class Store:
    """Write ``value`` from offset ``at`` on; no more than ``room`` elements of it, if given."""

    array: str
    at: Dim
    value: Value
    type: ElementType
    width: str = ONE
    room: Dim | None = None


Statement: TypeAlias = (
    For | If | When | Index | Declare | Lines | Assign | Keep | Array | RecordNaN | IfNaN | Store
)
