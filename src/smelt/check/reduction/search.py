"""The smallest model so far, and candidates that are tried in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import onnx_ir as ir

from smelt.errors import SmeltError
from smelt.frontends.onnx import check_model
from smelt.ir import scope
from smelt.ir.extraction import keep_needed, needed_inputs
from smelt.ir.names import name_values
from smelt.ir.shapes import infer_within

Check: TypeAlias = Callable[[ir.Model], bool]
"""True if the model, which is a copy, still shows it."""

Edit: TypeAlias = Callable[[ir.Model], bool]
"""Makes a copy of the model smaller, in place; False if there is nothing to do."""


class OutOfRuns(Exception):
    """The check may not be run any more."""


class Search:
    """``model`` is the smallest that shows it. Every candidate is valid before ``check`` sees it.

    ``loose`` are inputs and outputs of unknown type or rank, which the model has from the start.
    ``runs`` counts calls of the check, ``most`` limits them.
    """

    def __init__(
        self,
        model: ir.Model,
        check: Check,
        most: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.model, self.check, self.most, self.say = model, check, most, say
        self.runs = self.accepted = 0
        self.loose = frozenset(value.name for value in _ports(model) if not _is_typed(value))

    def shows(self, model: ir.Model) -> bool:
        """Run the check on a copy of ``model``."""
        if self.most is not None and self.runs >= self.most:
            raise OutOfRuns
        self.runs += 1
        self.say(f"run {self.runs}: {self.count():,} nodes, trying {len(model.graph):,}")
        return self.check(model.clone())

    def attempt(self, edit: Edit) -> bool:
        """Take the model that ``edit`` makes if it is valid and still shows it."""
        candidate = self.model.clone()
        if not edit(candidate) or not completed(candidate):
            return False
        ports = _ports(candidate)
        if not all(_is_typed(value) or value.name in self.loose for value in ports):
            return False  # what checks models would refuse it
        if not self.shows(candidate):
            return False
        self.model = candidate
        self.accepted += 1
        return True

    def count(self) -> int:
        """Nodes of all graphs."""
        return sum(1 for _ in scope.nodes(self.model))


def completed(model: ir.Model) -> bool:
    """Drop what no output needs, and infer types; False if that gives no valid model."""
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
    return (*model.graph.inputs, *model.graph.outputs)


def _is_typed(value: ir.Value) -> bool:
    """True if inputs and outputs may be declared so: with an element type and a rank."""
    return value.dtype is not None and value.shape is not None


def sweep(count: Callable[[], int], tries: Sequence[Callable[[range], int]]) -> bool:
    """Try to drop runs of things that are counted, halves first, then ever smaller ones.

    Each of ``tries`` drops those of a range and says how many went; a later one is tried at a size
    where those before took nothing. True if anything went. Where all but a few in one place can go
    it takes some ``log n`` tries, where nothing can some ``2 n`` of each.
    """
    any_taken = False
    size = max(count() // 2, 1)
    while True:
        any_taken |= any(_sweep_once(count, attempt, size) for attempt in tries)
        if size == 1:
            return any_taken
        size = max(1, min(size, count()) // 2)


def _sweep_once(count: Callable[[], int], attempt: Callable[[range], int], size: int) -> bool:
    """Go through all once, in runs of ``size``."""
    start, taken = 0, False
    while start < count():
        chosen = range(start, min(start + size, count()))
        went = attempt(chosen)
        taken |= went > 0
        # Where little went, the rest of the range would be tried over and over.
        start += 0 if 2 * went > len(chosen) else max(len(chosen) - went, 1)
    return taken
