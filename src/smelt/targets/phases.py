"""The phases that a target adds to the passes: run in order, and each in a few words."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.absent import refuse_absent
from smelt.ir.partition import Part, partition
from smelt.spans import span
from smelt.targets.backend import emit_selected, rules_of, select_around
from smelt.targets.base import Artifact, Target
from smelt.targets.legality import refusal
from smelt.targets.parts import compose
from smelt.targets.selection import select


def run_phases(
    model: ir.Model,
    target: Target[Any, Any],
    own: Any,
    fallback: Target[Any, Any] | None = None,
    prepare: Callable[[ir.Model], None] = lambda model: None,
) -> Artifact:
    """What ``target``, with its ``own`` options, makes of an optimized model.

    With a ``fallback``, what the target refuses goes there, ``prepare`` having seen it. Without
    one, raises an ErrorList of all that the target cannot take before ``schedule`` sees the model.
    """
    refuse_absent(model, "compiled")
    with span("select", target=target.name) as told:
        rules = rules_of(target, own)
        selection = select_around(model, target, own, lambda: select(model, rules))
        told.note(nodes=sum(1 for _ in scope.nodes(model)))
    parts: list[Part] = []
    if fallback is not None:
        with span("partition", target=target.name) as told:
            parts = partition(model.graph, lambda node: not refusal(target, node), target.cost)
            told.note(parts=len(parts))
    if fallback is None or all(part.taken for part in parts):
        artifact = emit_selected(model, target, own)
    else:
        artifact = compose(model, parts, (target, own), fallback, prepare)
    artifact.report.setdefault("select", selection.to_json())
    return artifact


def phases(target: Target[Any, Any]) -> dict[str, str]:
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
