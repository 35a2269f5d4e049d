"""The phases of one target over a selected model: check limits, schedule, allocate, emit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir.rule import Rule
from smelt.spans import span
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.legality import check_limits


def rules_of(target: Target[Any, Any], own: Any) -> Sequence[Rule]:
    """The rules by which ``target`` selects under its ``own`` options."""
    return target.select(own) if callable(target.select) else target.select


def emit_selected(model: ir.Model, target: Target[Any, Any], own: Any) -> Artifact:
    """What ``target``, with its ``own`` options, makes of a model after selection.

    Raises an ErrorList of all that it cannot take, before ``schedule`` sees the model.
    """
    plan: Plan[Any, Any] = Plan(model, own)
    with span("check limits", target=target.name):
        check_limits(model, target)
    with span("schedule", target=target.name):
        target.schedule(plan)
    with span("allocate", target=target.name):
        target.allocate(plan)
    with span("emit", target=target.name):
        return target.emit(plan)
