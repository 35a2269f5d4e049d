"""The phases that a target adds to the passes: run in order, and each in a few words."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rule import Rule
from smelt.spans import span
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.legality import check_limits
from smelt.targets.selection import select


def run_phases(model: ir.Model, target: Target, own: Any) -> Artifact:
    """What ``target``, with its ``own`` options, makes of an optimized model.

    Raises an ErrorList of all that it cannot take, before ``schedule`` sees the model.
    """
    plan: Plan[Any, Any] = Plan(model, own)
    with span("select", target=target.name) as told:
        selection = select(model, rules_of(target, own))
        told.note(nodes=sum(1 for _ in scope.nodes(model)))
    with span("check limits", target=target.name):
        check_limits(model, target)
    with span("schedule", target=target.name):
        target.schedule(plan)
    with span("allocate", target=target.name):
        target.allocate(plan)
    with span("emit", target=target.name):
        artifact = target.emit(plan)
    artifact.report.setdefault("select", selection.to_json())
    return artifact


def rules_of(target: Target, own: Any) -> Sequence[Rule]:
    """The rules by which ``target`` selects under its ``own`` options."""
    return target.select(own) if callable(target.select) else target.select


def phases(target: Target) -> dict[str, str]:
    """What ``target`` does with a model that the passes are through with, in order.

    A phase that it does not declare is left out. The words are those of its rules, and the first
    line of the documentation of its functions.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(Target)}
    found: dict[str, str] = {}
    rules = rules_of(target, target.options() if target.options is not None else None)
    if rules:
        found["select"] = f"by the rules {', '.join(rule.name for rule in rules)}"
    found["check limits"] = "refuses, all at once, what the target cannot take"
    for name in ("schedule", "allocate", "emit"):
        phase = getattr(target, name)
        if phase is not defaults[name]:
            written = inspect.getdoc(phase) or str(getattr(phase, "__name__", name))
            found[name] = written.splitlines()[0].replace("``", "`")
    return found
