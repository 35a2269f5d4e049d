"""Run the steps of a pipeline over a model, measure each pass, and let observers watch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext
from smelt.passes.pipeline import Fixpoint, Step, Steps


@dataclass
class PassReport:
    """What one run of one pass did. ``seconds`` is CPU time; node counts include subgraphs."""

    name: str
    text: str
    seconds: float
    nodes_before: int
    nodes_after: int
    stats: RuleStats = field(default_factory=RuleStats)

    @property
    def changed(self) -> bool:
        return self.stats.rewrites > 0

    def to_json(self) -> dict[str, Any]:
        missed = [
            {"rule": rule, "why": why, "count": count, "node": self.stats.example[rule, why]}
            for (rule, why), count in self.stats.missed.items()
        ]
        return {
            "pass": self.text,
            "seconds": self.seconds,
            "nodes": [self.nodes_before, self.nodes_after],
            "rewrites": self.stats.rewrites,
            "rules": dict(self.stats.fired),
            "near_misses": missed,
        }


class Observer(Protocol):
    """Watches a pipeline: called around every run of a pass."""

    def before_pass(self, step: Step, model: ir.Model) -> None: ...

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None: ...


def run(cx: PassContext, steps: Steps, observers: Iterable[Observer] = ()) -> list[PassReport]:
    """Run ``steps`` in order on ``cx.model``; one report a pass run, in order."""
    watching = tuple(observers)
    return list(_run_all(cx, steps, watching))


def _run_all(
    cx: PassContext, steps: Steps, observers: tuple[Observer, ...]
) -> Iterator[PassReport]:
    for step in steps:
        if isinstance(step, Step):
            yield _run_step(cx, step, observers)
            continue
        for _ in range(step.rounds):
            reports = list(_run_all(cx, step.steps, observers))
            yield from reports
            if not any(report.changed for report in reports):
                break


def _run_step(cx: PassContext, step: Step, observers: tuple[Observer, ...]) -> PassReport:
    for observer in observers:
        observer.before_pass(step, cx.model)
    before = count_nodes(cx.model)
    started = time.process_time()
    stats = step.pass_.run(cx, step.options)
    seconds = time.process_time() - started
    report = PassReport(step.pass_.name, str(step), seconds, before, count_nodes(cx.model), stats)
    for observer in observers:
        observer.after_pass(step, cx.model, report)
    return report


def count_nodes(model: ir.Model) -> int:
    """Nodes of every graph, subgraphs and functions included."""
    return sum(len(graph) for graph in scope.graphs(model))


__all__ = ["Fixpoint", "Observer", "PassReport", "count_nodes", "run"]
