"""Run the steps of a pipeline over a model, measure each pass, and call observers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.interface_change import to_json
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Exactness, PassContext
from smelt.passes.pipeline import Fixpoint, Step, Steps
from smelt.spans import span


@dataclass
class PassReport:
    """The effect of one run of one pass.

    ``seconds`` is CPU time, 0 for a pass whose operators the model does not have. Node counts
    include subgraphs. ``exactness`` is the promise of this run.
    """

    name: str
    text: str
    seconds: float
    nodes_before: int
    nodes_after: int
    stats: RuleStats = field(default_factory=RuleStats)
    exactness: Exactness = EXACT

    @property
    def changed(self) -> bool:
        """True if the run edited the model."""
        return self.stats.rewrites > 0

    def __repr__(self) -> str:
        did = f"{self.stats.rewrites} rewrites" if self.changed else "nothing"
        nodes = f"{self.nodes_before} -> {self.nodes_after} nodes"
        return f"<PassReport {self.text}: {did}, {nodes}, {1e3 * self.seconds:.1f} ms>"

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data, with rules, near misses and interface changes."""
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
            "exactness": str(self.exactness),
            "interface": [to_json(change) for change in self.stats.interface],
            "near_misses": missed,
        }


class Observer(Protocol):
    """An object that is called before and after every run of a pass."""

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Called before ``step`` runs on ``model``."""

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Called after ``step`` ran on ``model``, with the report of the run."""


def run(cx: PassContext, steps: Steps, observers: Iterable[Observer] = ()) -> list[PassReport]:
    """Run ``steps`` in order on ``cx.model``; return one report for each run of a pass, in
    order."""
    return list(_Run(cx, tuple(observers)).steps(steps))


class _Run:
    """One run of a pipeline.

    ``edits`` counts the edits that other passes can notice. ``idle_at`` maps a step to the count at
    which it last found nothing to do, so a fixpoint skips the step until the count changes.
    """

    def __init__(self, cx: PassContext, observers: tuple[Observer, ...]) -> None:
        """Begin a run without edits."""
        self.cx = cx
        self.observers = observers
        self.edits = 0
        self.idle_at: dict[str, int] = {}

    def steps(self, steps: Steps) -> Iterator[PassReport]:
        """Run ``steps`` and yield their reports.

        Skip a step that found nothing to do, until another step changes the model.
        """
        for step in steps:
            if isinstance(step, Fixpoint):
                yield from self.fixpoint(step)
            elif self.idle_at.get(str(step)) != self.edits:
                yield self.step(step)

    def fixpoint(self, group: Fixpoint) -> Iterator[PassReport]:
        """Repeat a group of steps until no pass changes the model and no further shape becomes
        known.

        If the model still changes in the last round, the reports of that round get a near miss that
        says so.
        """
        for index in range(group.rounds):
            with span("fixpoint", round=index + 1):
                reports = list(self.steps(group.steps))
            yield from reports
            last = [report for report in reports if report.changed]
            if not last:
                if not self.cx.infer_again():
                    return
                self.idle_at.clear()
        for report in last:
            reason = f"the pass still changes the model in round {group.rounds} of {group.rounds}"
            report.stats.missed["fixpoint", reason] += 1
            report.stats.example["fixpoint", reason] = report.name

    def step(self, step: Step) -> PassReport:
        """Run one pass between the observers' calls and return its report."""
        for observer in self.observers:
            observer.before_pass(step, self.cx.model)
        before = self.cx.index().count
        text, is_idle = str(step), step.pass_.is_idle(self.cx)
        # Reading the process clock takes longer than an idle pass.
        started = 0.0 if is_idle else time.process_time()
        with span(step.pass_.spelling, "pass", text=text, nodes_before=before) as running:
            stats = step.pass_.run(self.cx, step.options)
            after = self.cx.index().count
            running.note(nodes_after=after, rewrites=stats.rewrites)
        seconds = 0.0 if is_idle else time.process_time() - started
        self.edits += stats.rewrites - stats.unseen
        if not stats.rewrites or (step.pass_.rule_set is not None and not stats.skipped):
            self.idle_at[text] = self.edits
        promised = step.pass_.exactness_of(stats, step.options)
        report = PassReport(step.pass_.name, text, seconds, before, after, stats, promised)
        for observer in self.observers:
            observer.after_pass(step, self.cx.model, report)
        return report


def count_nodes(model: ir.Model) -> int:
    """Return the number of nodes of all graphs, subgraphs and functions included."""
    return sum(len(graph) for graph in scope.graphs(model))
