"""Schedules: tuples of directives that say how an algorithm is computed.

No directive changes a result, except by the order in which a reduction adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from smelt.loops.operators import LANES, Operator
from smelt.program.run_sizes import Dim, Size

MOST_LANES = 16
VECTOR = Size.named(LANES, 8, MOST_LANES)
"""The number of lanes of a vector, 8 to ``MOST_LANES``, which the C preprocessor knows."""


@dataclass(frozen=True)
class Separate:
    """Reduce over all axes but ``along`` first, in a stage ``name`` with the axis ``axis``.

    A window of 3 x 3 takes 2 + 2 steps instead of 8. The stage is computed for each value of the
    result's index along its last axis, so neighbors share it.
    """

    along: str
    name: str
    axis: str


@dataclass(frozen=True)
class Doubling:
    """Reduce along ``along`` in passes. A pass combines two or three windows of the pass before.

    The windows may overlap, so an element may be combined twice. The passes overwrite ``name``.
    """

    along: str
    name: str


@dataclass(frozen=True)
class Unroll:
    """The reduction along ``along`` as one expression instead of a loop."""

    along: str


@dataclass(frozen=True)
class Split:
    """The loop over ``axis`` in blocks of ``by`` iterations."""

    axis: str
    by: Dim


@dataclass(frozen=True)
class ComputeAt:
    """Compute stage ``name`` within the loop over blocks of ``axis``, in an array of ``size``.

    Without an axis, the stage is computed once, before all loops. Size 0: the stage has a buffer
    already, and gets no array.
    """

    name: str
    axis: str
    size: int


@dataclass(frozen=True)
class Vector:
    """Compute the innermost loop of stage ``name`` in vectors.

    ``beyond``: a last vector is stored beyond a row's end, which the next row overwrites, but not
    beyond the block's end. Otherwise, the last vector overlaps the one before.
    """

    name: str
    beyond: bool = False


@dataclass(frozen=True)
class Outermost:
    """Move the reduction of stage ``name`` out of the innermost loop; sums are kept in memory."""

    name: str


@dataclass(frozen=True)
class Registers:
    """Compute all results along ``axis`` at once, in registers.

    An element that several results read is read once. The stage's value must be a chain of
    multiply-adds; its factors that do not depend on the innermost axis stay in registers.
    """

    axis: str


@dataclass(frozen=True)
class Partial:
    """Reduce along ``along``, the innermost axis, to ``count`` results, which are combined at last.

    Element i is combined with partial result i % ``count``. ``after_all_loops``: partial results
    are combined after all loops of the reduction, not after each row. ``rows_axis``: the result's
    last axis, if the short rows along it are read as one; ``count`` is a multiple of its extent.
    """

    along: str
    count: int
    after_all_loops: bool = False
    rows_axis: str = ""


@dataclass(frozen=True)
class InLanes:
    """Add up along ``along``, the only axis, in the lanes of a vector."""

    along: str


@dataclass(frozen=True)
class RowFunction:
    """Reduce along ``along``, the innermost axis, by a ``function`` of pointer and size."""

    along: str
    function: Operator


@dataclass(frozen=True)
class Share:
    """Threads share the loop over ``axis``, one of the result's."""

    axis: str


Directive: TypeAlias = (
    Separate
    | Unroll
    | Doubling
    | Split
    | ComputeAt
    | Vector
    | Outermost
    | Registers
    | Partial
    | InLanes
    | RowFunction
    | Share
)
Schedule: TypeAlias = tuple[Directive, ...]
