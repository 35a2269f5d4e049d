"""Find the operations of a body that its results depend on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from smelt.frontends.stablehlo.decompositions import Decomposed


class Step(NamedTuple):
    """One step of an evaluation: the operation ``view``.

    If ``function`` is set, ``view`` ends the expansion of that JAX function. The step then calls
    the function on ``operands``.
    """

    view: Any
    function: Callable[..., Any] | None = None
    operands: Sequence[Any] = ()


class Steps(NamedTuple):
    """The needed ``steps`` of a body in order, and ``read``: the values that they read.

    The requested results are in ``read``, too.
    """

    steps: list[Step]
    read: set[Any]


def steps_of(
    block: Any,
    decomposed: Decomposed,
    ends: Sequence[Any],
    precomputed: frozenset[Any] = frozenset(),
) -> Steps:
    """Return the operations of ``block`` that compute ``ends`` from the values in ``precomputed``.

    A recognized expansion is one step, and operations that only the expansion reads are left out.
    Operations without readers are left out unless they have side effects.
    """
    steps: list[Step] = []
    values_read = set(ends)
    for view in reversed([view.operation for view in block.operations]):
        results = list(view.results)
        if view.name.endswith(".return") or precomputed.intersection(results):
            continue
        if values_read.intersection(results) or not results or "has_side_effect" in view.attributes:
            recognized = decomposed.find(view)
            step = Step(view) if recognized is None else Step(view, *recognized)
            values_read.update(step.operands if step.function else _all_operands(view))
            steps.append(step)
    return Steps(steps[::-1], values_read)


def _all_operands(view: Any) -> list[Any]:
    """Return the operands of an operation and of the operations in its bodies."""
    operands = list(view.operands)
    for region in view.regions:
        for block in region.blocks:
            for inner in block.operations:
                operands += _all_operands(inner.operation)
    return operands
