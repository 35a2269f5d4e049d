"""Which operations of a body are evaluated: those that a result hangs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from smelt.frontends.stablehlo.decompositions import Decomposed


class Step(NamedTuple):
    """The operation ``view``; with ``function``, that of ``operands`` is its result."""

    view: Any
    function: Callable[..., Any] | None = None
    operands: Sequence[Any] = ()


def steps_of(block: Any, decomposed: Decomposed) -> list[Step]:
    """The operations of ``block`` in order, the return last, functions that are written out as one.

    What only such a function has read is left out, and so is what nothing reads, unless it is an
    effect.
    """
    steps: list[Step] = []
    read: set[Any] = set()
    for view in reversed([view.operation for view in block.operations]):
        if any(result in read for result in view.results) or _is_kept(view):
            found = decomposed.found(view)
            step = Step(view) if found is None else Step(view, *found)
            read.update(step.operands if step.function else _all_read(view))
            steps.append(step)
    return steps[::-1]


def _is_kept(view: Any) -> bool:
    return not len(view.results) or "has_side_effect" in view.attributes


def _all_read(view: Any) -> list[Any]:
    """The operands of an operation and, if it has bodies, of those in them."""
    found = list(view.operands)
    for region in view.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _all_read(inner.operation)
    return found
