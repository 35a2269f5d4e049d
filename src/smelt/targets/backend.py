"""The phases of one target over a selected model: check limits, schedule, allocate, emit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.errors import SmeltError, UsageError, did_you_mean
from smelt.extensions import blame
from smelt.frontends.onnx import load, to_proto
from smelt.ir.rule import Rule
from smelt.spans import span
from smelt.targets.attribution import attribute_errors_to, check_artifact, checked_load
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.legality import check_limits
from smelt.targets.phase_observer import PHASES, notify, verify_phase
from smelt.targets.registry import find_target, target_names
from smelt.targets.selection import Selection

Pickled: TypeAlias = tuple[Callable[..., Artifact], tuple[str, bytes, Any, dict[str, Any]]]

POINTS = tuple(f"{side} {phase}" for phase in PHASES for side in ("before", "after"))
"""The points at which a target may add steps of its own."""


def rules_of(target: Target[Any, Any], options: Any) -> Sequence[Rule]:
    """Return the selection rules of ``target`` for its ``options``; raises UsageError E649."""
    if not callable(target.select):
        return target.select
    with attribute_errors_to(target, "select"):
        rules = target.select(options)
    if not isinstance(rules, tuple | list) or not all(isinstance(each, Rule) for each in rules):
        raise UsageError(
            "E649",
            f"`select` of target {target.name!r} returned {repr(rules)[:60]}",
            fix="return a tuple of rules",
            why="select(options) gives the rules that choose operators of the target",
        )
    return rules


def emit_selected(model: ir.Model, target: Target[Any, Any], options: Any) -> Artifact:
    """Run the phases of ``target`` after selection, and return the Artifact.

    ``options`` are the target's. Raises an ErrorList of everything that the target does not
    support, before ``schedule`` sees the model.
    """
    plan: Plan[Any, Any] = Plan(model, options)
    seconds: dict[str, float] = {}
    artifacts: list[object] = []
    check_points(target)

    def step(name: str, run: Callable[[], object]) -> None:
        """Run one phase, and record its seconds."""
        started = perf_counter()
        with span(name, target=target.name):
            run()
        seconds[name] = perf_counter() - started

    step("check limits", lambda: check_limits(model, target, options))
    for phase, run in (
        ("schedule", lambda: target.schedule(plan)),
        ("allocate", lambda: target.allocate(plan)),
        ("emit", lambda: artifacts.append(target.emit(plan))),
    ):
        for point in (f"before {phase}", phase, f"after {phase}"):
            if point == phase:
                with attribute_errors_to(target, phase):
                    step(phase, run)
            for added_step in target.around.get(point, ()):
                name = f"{point}: {getattr(added_step, '__name__', 'step')}"
                step(name, partial(run_step, target, point, added_step, plan))
        notify(phase, target, plan)
    artifact = check_artifact(target, *artifacts)
    artifact.load = checked_load(target, artifact)
    artifact.pickle = pickled
    artifact.report.setdefault("phases", {name: round(seconds[name], 6) for name in seconds})
    return artifact


def pickled(artifact: Artifact) -> Pickled | None:
    """Return what ``pickle`` stores: the selected model in ONNX and the target that emits it again.

    Compiled code is no part of a pickle; it comes from the cache on the same CPU, else it is
    compiled again. None for a target that is not registered. Raises ResourceLimit E504 if the
    weights do not fit into one ONNX file.
    """
    if artifact.target not in target_names():
        return None
    data = to_proto(artifact.model, keep_bare=True).SerializeToString()
    return emit_again, (artifact.target, data, artifact.plan.options, artifact.report)


def emit_again(target: str, data: bytes, options: Any, report: dict[str, Any]) -> Artifact:
    """Return the artifact that ``target`` emits for the selected model in ``data``."""
    artifact = emit_selected(load(data, keep_opset=True), find_target(target), options)
    artifact.report.update(report)
    return artifact


def select_around(
    model: ir.Model, target: Target[Any, Any], options: Any, run: Callable[[], Selection]
) -> Selection:
    """Run the selection ``run`` between the target's steps before and after it.

    The plan of these steps has only the model and the options.
    """
    check_points(target)
    plan: Plan[Any, Any] = Plan(model, options)
    for each in target.around.get("before select", ()):
        run_step(target, "before select", each, plan)
    selection = run()
    for each in target.around.get("after select", ()):
        run_step(target, "after select", each, plan)
    notify("select", target, plan)
    return selection


def run_step(
    target: Target[Any, Any],
    point: str,
    added_step: Callable[[Plan[Any, Any]], None],
    plan: Plan[Any, Any],
) -> None:
    """Run one of the target's steps on ``plan``, and check the plan afterwards.

    Raises UsageError E653 if the step breaks the graph, its interface, the Program or the memory
    plan.
    """
    model, interface = plan.model, _interface(plan.model)
    description = (
        f"the step {getattr(added_step, '__name__', 'step')} {point} of target {target.name!r}"
    )
    try:
        added_step(plan)
    except Exception as error:
        blame(error, added_step, description)
        raise
    why = ""
    if plan.model is not model:
        why = "it puts another model into the plan, which only its own later phases would see"
    elif _interface(model) != interface:
        why = "it changes the names, types or shapes of inputs or outputs"
    else:
        try:
            for phase in ("select", "schedule", "allocate"):
                verify_phase(phase, target, plan)
        except SmeltError as error:
            why = f"{error.code} {error.what}"
    if why:
        raise UsageError(
            "E653",
            f"{description} leaves a broken plan",
            why=why,
            fix="correct the step, or leave it out",
        )


def _interface(model: ir.Model) -> list[str]:
    """Return name, type and shape of each input and output, as text to compare."""
    return [repr((v.name, v.dtype, v.shape)) for v in (*model.graph.inputs, *model.graph.outputs)]


def check_points(target: Target[Any, Any]) -> None:
    """Raise UsageError E648 for an unknown point in ``target.around``."""
    unknown = [point for point in target.around if point not in POINTS]
    if unknown:
        raise UsageError(
            "E648",
            f"target {target.name!r} adds steps at {unknown[0]!r}, a point that no compile has",
            why=f"the points of a compile are {', '.join(POINTS)}",
            fix=did_you_mean(unknown[0], POINTS, f"use one of {', '.join(POINTS)}"),
        )
