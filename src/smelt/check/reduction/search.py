"""The smallest model found so far on which a check holds, and the trial of smaller candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import SmeltError
from smelt.frontends.onnx import check_model
from smelt.ir import scope
from smelt.ir.extraction import keep_needed, needed_inputs
from smelt.ir.names import name_values
from smelt.ir.shapes.inference import infer_within

Check: TypeAlias = Callable[[ir.Model], bool]
"""Returns True if the check holds on the model, a copy that it may change."""

Edit: TypeAlias = Callable[[ir.Model], bool]
"""Makes the model smaller in place; returns False if there is nothing to do."""


class OutOfRuns(Exception):
    """Raised when the limit of check runs is reached."""


class Search:
    """Keeps in ``model`` the smallest valid model so far on which the check holds.

    ``loose`` are the names of inputs and outputs that have no type or rank in the source; only they
    may lack it in a candidate. ``runs`` counts calls of the check, ``most`` limits them.
    """

    def __init__(
        self,
        model: ir.Model,
        check: Check,
        most: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Start with ``model`` as the smallest one."""
        self.model, self.check, self.most, self.say = model, check, most, say
        self.runs = self.accepted = 0
        self.loose = frozenset(value.name for value in _ports(model) if not _is_typed(value))

    def still_shows_failure(self, model: ir.Model) -> bool:
        """Run the check on a copy of ``model``; raises OutOfRuns beyond the limit."""
        if self.most is not None and self.runs >= self.most:
            raise OutOfRuns
        self.runs += 1
        self.say(f"run {self.runs}: {self.count():,} nodes, trying {len(model.graph):,}")
        return self.check(model.clone())

    def attempt(self, edit: Edit) -> bool:
        """Apply ``edit`` to a copy of the model; True if the copy is valid and the check holds.

        The copy then becomes the smallest model.
        """
        candidate = self.model.clone()
        if not edit(candidate) or not completed(candidate):
            return False
        ports = _ports(candidate)
        if not all(_is_typed(value) or value.name in self.loose for value in ports):
            return False  # ONNX demands a type and a rank of each input and output
        if not self.still_shows_failure(candidate):
            return False
        self.model = candidate
        self.accepted += 1
        return True

    def count(self) -> int:
        """Return the number of nodes in all graphs."""
        return sum(1 for _ in scope.nodes(self.model))


def completed(model: ir.Model) -> bool:
    """Remove the nodes that no output needs and infer types; False if the model is then invalid."""
    keep_needed(model)
    needed = needed_inputs(model.graph)
    if len(needed) < len(model.graph.inputs):
        model.graph.inputs.clear()
        model.graph.inputs.extend(needed)
    if not model.graph.outputs:
        return False
    try:
        name_values(model)
        check_model(model)
        infer_within(model)
    except SmeltError:
        return False
    return True


def _ports(model: ir.Model) -> tuple[ir.Value, ...]:
    """Return the inputs, then the outputs of the main graph."""
    return (*model.graph.inputs, *model.graph.outputs)


def _is_typed(value: ir.Value) -> bool:
    """True if ``value`` has an element type and a rank, as inputs and outputs must have."""
    return value.dtype is not None and value.shape is not None


def sweep(count: Callable[[], int], attempts: Sequence[Callable[[range], int]]) -> bool:
    """Try to drop ranges of n = ``count()`` items, halves first, then smaller ranges.

    Returns True if an item was dropped. Each of ``attempts`` gets a range of item numbers, drops
    what it can, and returns how many items it dropped; a later one runs at a range size only if the
    earlier ones dropped nothing. If almost all items can be dropped, this takes about ``log n``
    calls; if none can, about ``2 n`` calls of each. Compare the ddmin algorithm of Zeller and
    Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002).
    """
    any_dropped = False
    size = max(count() // 2, 1)
    while True:
        any_dropped |= any(_sweep_once(count, attempt, size) for attempt in attempts)
        if size == 1:
            return any_dropped
        size = max(1, min(size, count()) // 2)


def _sweep_once(count: Callable[[], int], attempt: Callable[[range], int], size: int) -> bool:
    """Try all ranges of ``size`` once, in order; True if an item was dropped."""
    start, any_dropped = 0, False
    while start < count():
        chosen = range(start, min(start + size, count()))
        dropped = attempt(chosen)
        any_dropped |= dropped > 0
        # If at most half was dropped, skip the rest: it would be tried again and again.
        start += 0 if 2 * dropped > len(chosen) else max(len(chosen) - dropped, 1)
    return any_dropped
