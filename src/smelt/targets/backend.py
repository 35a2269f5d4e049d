"""The phases of one target over a selected model: check limits, schedule, allocate, emit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean
from smelt.ir.rule import Rule
from smelt.spans import span
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.legality import check_limits
from smelt.targets.selection import Selection
from smelt.targets.watch import PHASES, ended

POINTS = tuple(f"{side} {phase}" for phase in PHASES for side in ("before", "after"))
"""Where a target may have steps of its own."""


def rules_of(target: Target[Any, Any], own: Any) -> Sequence[Rule]:
    """The rules by which ``target`` selects under its ``own`` options."""
    return target.select(own) if callable(target.select) else target.select


def emit_selected(model: ir.Model, target: Target[Any, Any], own: Any) -> Artifact:
    """What ``target``, with its ``own`` options, makes of a model after selection.

    Raises an ErrorList of all that it cannot take, before ``schedule`` sees the model.
    """
    plan: Plan[Any, Any] = Plan(model, own)
    took: dict[str, float] = {}
    made: list[Artifact] = []
    check_points(target)

    def step(name: str, run: Callable[[], object]) -> None:
        started = perf_counter()
        with span(name, target=target.name):
            run()
        took[name] = perf_counter() - started

    step("check limits", lambda: check_limits(model, target))
    for phase, run in (
        ("schedule", lambda: target.schedule(plan)),
        ("allocate", lambda: target.allocate(plan)),
        ("emit", lambda: made.append(target.emit(plan))),
    ):
        for point in (f"before {phase}", phase, f"after {phase}"):
            if point == phase:
                step(phase, run)
            for each in target.around.get(point, ()):
                step(f"{point}: {getattr(each, '__name__', 'step')}", partial(each, plan))
        ended(phase, target, plan)
    (artifact,) = made
    if not isinstance(artifact, Artifact):
        raise UsageError(
            "E649",
            f"`emit` of target {target.name!r} returned no Artifact",
            why=f"it returned {repr(artifact)[:60]}",
            fix="return Artifact(name, plan.model, files, plan)",
        )
    artifact.report.setdefault("phases", {name: round(took[name], 6) for name in took})
    return artifact


def select_around(
    model: ir.Model, target: Target[Any, Any], own: Any, run: Callable[[], Selection]
) -> Selection:
    """``run``, the selection of ``target``, between its own steps on the graph of the model.

    The plan that they get holds the model and the options, and nothing else yet.
    """
    check_points(target)
    plan: Plan[Any, Any] = Plan(model, own)
    for each in target.around.get("before select", ()):
        each(plan)
    selection = run()
    for each in target.around.get("after select", ()):
        each(plan)
    ended("select", target, plan)
    return selection


def check_points(target: Target[Any, Any]) -> None:
    """Raise UsageError E648 for a point of ``target.around`` that no phase has."""
    unknown = [point for point in target.around if point not in POINTS]
    if unknown:
        raise UsageError(
            "E648",
            f"target {target.name!r} has steps at {unknown[0]!r}, which is no point",
            why=f"points are {', '.join(POINTS)}",
            fix=did_you_mean(unknown[0], POINTS, ""),
        )
