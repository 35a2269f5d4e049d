"""Run the phases that a target adds to the passes, and describe each in a few words."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, SupportsFloat

import onnx_ir as ir

from smelt.errors import Unsupported, UsageError
from smelt.ir import scope
from smelt.ir.bounds import readable_bounds
from smelt.ir.partition import Part, is_constant_node, partition
from smelt.ir.tensors.missing_weights import refuse_missing_weights
from smelt.ir.text import operator
from smelt.spans import span
from smelt.targets.attribution import attribute_errors_to, call_with_options, is_built_in
from smelt.targets.backend import emit_selected, rules_of, select_around
from smelt.targets.base import Artifact, Target
from smelt.targets.legality import refusal
from smelt.targets.parts import compose
from smelt.targets.selection import select, warn_of_unknown_kernels
from smelt.targets.support import support


class NothingTaken(UserWarning):
    """Warns that a target with a fallback supports no node of a model."""


def run_phases(
    model: ir.Model,
    target: Target[Any, Any],
    options: Any,
    fallback: Target[Any, Any] | None = None,
    prepare: Callable[[ir.Model], None] = lambda model: None,
) -> Artifact:
    """Run the phases of ``target`` with its ``options`` on an optimized model.

    With a ``fallback``, unsupported nodes go there after ``prepare``. Without one, raises an
    ErrorList of everything unsupported before ``schedule`` sees the model.
    """
    refuse_missing_weights(model, "compiled")
    if not is_built_in(target):
        listed = {name for domain, name in target.limits.operators or () if not domain}
        warn_of_unknown_kernels(target.name, "kernels", target.kernels or ())
        warn_of_unknown_kernels(target.name, "limits.operators", listed)
    with span("select", target=target.name) as span_facts:
        rules = rules_of(target, options)
        selection = select_around(model, target, options, lambda: select(model, rules))
        span_facts.note(nodes=sum(1 for _ in scope.nodes(model)))
    parts: list[Part] = []
    refused: dict[ir.Node, str] = {}
    if fallback is not None:
        parts, refused = _partition(model, target, options)
        _check_bodies(target, fallback, parts, refused)
    taken_nodes = model.graph if fallback is None else _taken_nodes(parts)
    node_count = _count(taken_nodes)
    if fallback is None or all(part.taken for part in parts):
        artifact = emit_selected(model, target, options)
    else:
        left = elsewhere(parts, refused)
        if left and not any(part.taken for part in parts):
            misses = selection.to_json()["near_misses"]
            _warn_of_nothing_taken(target, fallback, left, misses)
        artifact = compose(model, parts, (target, options), fallback, prepare)
        artifact.report["elsewhere"] = left
    artifact.report["taken"] = node_count
    artifact.report.setdefault("select", selection.to_json())
    return artifact


def _partition(
    model: ir.Model, target: Target[Any, Any], options: Any
) -> tuple[list[Part], dict[ir.Node, str]]:
    """Return the parts of the main graph, and why ``target`` refuses each node ("" if it does
    not)."""
    with span("partition", target=target.name) as span_facts:
        bounds = readable_bounds(model.graph)
        refused = {node: refusal(target, node, bounds, options) for node in model.graph}
        price = None if target.cost is None else partial(_price, target, options)
        parts = partition(model.graph, lambda node: not refused[node], price)
        span_facts.note(parts=len(parts))
    return parts, refused


def _taken_nodes(parts: Sequence[Part]) -> Iterable[ir.Node]:
    """Return the nodes of all parts that the target takes."""
    return chain(*(part.nodes for part in parts if part.taken))


def _check_bodies(
    target: Target[Any, Any],
    fallback: Target[Any, Any],
    parts: Sequence[Part],
    refused: Mapping[ir.Node, str],
) -> None:
    """Raise Unsupported E201 for the target's operators without a body that go to the fallback."""
    bodiless = {operator.key for operator in target.operators if operator.body is None}
    for node in (node for part in parts if not part.taken for node in part.nodes):
        key = node.domain, node.op_type
        if key in bodiless and not support(fallback, *key).takes:
            raise Unsupported(
                "E201",
                f"operator {'.'.join(key)} cannot go to the fallback {fallback.name!r}",
                at=f"node {node.name!r}",
                why=f"target {target.name!r} leaves it there ({refused[node] or 'its cost'}),"
                " and the operator has no body",
                fix="declare it with a `body`, or take this node",
            )


def _price(target: Target[Any, Any], options: Any, nodes: Sequence[ir.Node]) -> float:
    """Return the target's ``cost`` of a region; raises UsageError E649 if it is no number."""
    assert target.cost is not None
    with attribute_errors_to(target, "cost"):
        price = call_with_options(target.cost, nodes, options)
    if not isinstance(price, SupportsFloat) or math.isnan(price):
        raise UsageError(
            "E649",
            f"`cost` of target {target.name!r} returned {repr(price)[:40]}",
            at=f"a region of {len(nodes)} nodes from {nodes[0].name!r} on",
            fix="return a number: above 0, the region goes to the fallback",
            why="cost compares a region on this target with the same region on the fallback",
        )
    return float(price)


def _count(nodes: Iterable[ir.Node]) -> dict[str, int]:
    """Return the number of nodes for each operator, without constants."""
    return dict(Counter(operator(node) for node in nodes if not is_constant_node(node)))


def elsewhere(parts: Sequence[Part], refused: Mapping[ir.Node, str]) -> list[dict[str, Any]]:
    """Return why nodes go to the fallback: the count and an example for each
    operator and reason.
    """
    nodes_of: dict[tuple[str, str], list[ir.Node]] = {}
    for part in parts:
        for node in () if part.taken else part.nodes:
            why = refused[node] or "its region costs more than it saves"
            nodes_of.setdefault((operator(node), why), []).append(node)
    return [
        {"operator": name, "why": why, "count": len(nodes), "node": nodes[0].name}
        for (name, why), nodes in nodes_of.items()
    ]


def _warn_of_nothing_taken(
    target: Target[Any, Any],
    fallback: Target[Any, Any],
    left: Sequence[Mapping[str, Any]],
    misses: Sequence[Mapping[str, Any]],
) -> None:
    """Warn that all of a model went to ``fallback``, with the most frequent reason
    and near miss.
    """
    operator = max(left, key=lambda entry: int(entry["count"]))
    most_frequent = max(misses, key=lambda entry: int(entry["count"]), default=None)
    near_miss = (
        f" (its rule {most_frequent['rule']} at {most_frequent['node']!r}: "
        f"{most_frequent['reason']})"
        if most_frequent
        else ""
    )
    warnings.warn(
        f"target {target.name!r} takes no node of this model, so {fallback.name!r} runs all of it:"
        f" {operator['operator']} {operator['node']!r}: {operator['why']}{near_miss}",
        NothingTaken,
        stacklevel=2,
    )


def phases(target: Target[Any, Any]) -> dict[str, str]:
    """Return the phases of ``target`` after the passes, in order, each with a description.

    Undeclared phases are left out. The description is the names of the rules, or the first line of
    the function's docstring.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(Target)}
    texts: dict[str, str] = {}
    rules = rules_of(target, target.options() if target.options is not None else None)
    if rules:
        texts["select"] = f"by the rules {', '.join(rule.name for rule in rules)}"
    texts["check limits"] = "refuses, all at once, what the target cannot take"
    for name in ("schedule", "allocate", "emit"):
        phase = getattr(target, name)
        if phase is not defaults[name]:
            written = inspect.getdoc(phase) or str(getattr(phase, "__name__", name))
            texts[name] = written.splitlines()[0].replace("``", "`")
    return texts
