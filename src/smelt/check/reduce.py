"""Shrink a model as long as a check holds on it: a crash or a mismatch still occurs.

Nodes are removed in halves, then in ever smaller groups; a removed result becomes an input, another
value of equal type, or a constant. Outputs, branches, sizes and weights follow. All steps repeat
until no step removes anything. Equal arguments give equal models.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx_ir as ir

from smelt.check.reduction.interface import (
    bind_symbols,
    choose_branches,
    drop_outputs,
    inline_calls,
)
from smelt.check.reduction.nodes import drop_nodes
from smelt.check.reduction.search import Check, OutOfRuns, Search
from smelt.check.reduction.sizes import shrink_sizes
from smelt.check.reduction.weights import forget_weights
from smelt.errors import UsageError
from smelt.frontends.onnx import load
from smelt.ir import scope
from smelt.ir.shapes.inference import infer_within

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

Source: TypeAlias = "ir.Model | onnx.ModelProto | bytes | str | Path"

FIRST_STEPS = (drop_outputs, bind_symbols, inline_calls)
"""The steps that ``reduce`` runs once, first."""
REPEATED_STEPS = (drop_nodes, drop_outputs, choose_branches)
"""The steps that ``reduce`` repeats until no step removes a node."""

LAST_STEPS = (shrink_sizes, forget_weights)
"""The steps that ``reduce`` runs once, at the end."""


@dataclass(frozen=True)
class Reduction:
    """The reduced ``model``, with ``nodes`` and ``weight_bytes`` before and after.

    ``complete`` is False if the limit of runs or Ctrl-C ended the search while more could be
    removed; after Ctrl-C ``interrupted`` is True.
    """

    model: ir.Model
    nodes: tuple[int, int]
    weight_bytes: tuple[int, int]
    runs: int
    seconds: float
    complete: bool = True
    interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return {
            "nodes": list(self.nodes),
            "weight_bytes": list(self.weight_bytes),
            "runs": self.runs,
            "seconds": self.seconds,
            "complete": self.complete,
        }

    def __str__(self) -> str:
        """Return one sentence about the nodes, weights, runs and time."""
        (before, after), (bytes_before, bytes_after) = self.nodes, self.weight_bytes
        text = f"{before:,} nodes became {after:,}"
        text += f", {bytes_before:,} bytes of weights {bytes_after:,}"
        end = "" if self.complete else "; more nodes or weights may be removable"
        end = "; stopped by Ctrl-C" + end if self.interrupted else end
        return f"{text}, in {self.runs} runs of the check and {self.seconds:.1f} s{end}"


def reduce(
    source: Source,
    check: Check,
    *,
    runs: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Reduction:
    """Return the smallest model found for which ``check`` is True; it must be True for ``source``.

    ``check`` gets a copy of each candidate, which is a valid model; it is called at most ``runs``
    times, first on the source. An interrupt ends the search with the best model so far. Raises
    UsageError E621 if ``check`` is false for the source.
    """
    started = time.perf_counter()
    model = load(source, as_is=True)
    before = sum(1 for _ in scope.nodes(model)), scope.weight_bytes(model)
    search = Search(model, check, runs, say)
    if not search.still_shows_failure(model):
        raise UsageError(
            "E621",
            "the check does not find the fault in the whole model",
            why="reduction removes nodes as long as the check still finds the fault",
            fix="run the check by hand on the model",
        )
    infer_within(model)
    complete, interrupted = True, False
    try:
        _shrink(search)
    except (OutOfRuns, KeyboardInterrupt) as stop:
        complete, interrupted = False, isinstance(stop, KeyboardInterrupt)
    after = search.count(), scope.weight_bytes(search.model)
    nodes, weights = zip(before, after, strict=True)
    seconds = time.perf_counter() - started
    return Reduction(search.model, nodes, weights, search.runs, seconds, complete, interrupted)


def _shrink(search: Search) -> None:
    """Run all steps. If the last ones changed something, more nodes may go, so repeat those."""
    for step in FIRST_STEPS:
        step(search)
    _repeat_steps(search)
    changed = [step(search) for step in LAST_STEPS]
    if any(changed):
        _repeat_steps(search)


def _repeat_steps(search: Search) -> None:
    """Repeat ``REPEATED_STEPS`` until none of them removes a node."""
    while any(step(search) for step in REPEATED_STEPS):
        pass
