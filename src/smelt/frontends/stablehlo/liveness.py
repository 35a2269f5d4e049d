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


class Steps(NamedTuple):
    """Operations in order, and all values that they and what is asked for hang on."""

    steps: list[Step]
    read: set[Any]


def steps_of(
    block: Any, decomposed: Decomposed, ends: Sequence[Any], given: frozenset[Any] = frozenset()
) -> Steps:
    """The operations of ``block`` that tell the values ``ends`` where those ``given`` are known.

    A function that is written out is one step. What only such a function has read is left out, and
    so is what nothing reads, unless it is an effect.
    """
    steps: list[Step] = []
    read = set(ends)
    for view in reversed([view.operation for view in block.operations]):
        results = list(view.results)
        if view.name.endswith(".return") or given.intersection(results):
            continue
        if read.intersection(results) or not results or "has_side_effect" in view.attributes:
            found = decomposed.found(view)
            step = Step(view) if found is None else Step(view, *found)
            read.update(step.operands if step.function else _all_read(view))
            steps.append(step)
    return Steps(steps[::-1], read)


def _all_read(view: Any) -> list[Any]:
    """The operands of an operation and, if it has bodies, of those in them."""
    found = list(view.operands)
    for region in view.regions:
        for block in region.blocks:
            for inner in block.operations:
                found += _all_read(inner.operation)
    return found
