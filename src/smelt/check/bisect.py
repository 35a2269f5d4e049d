"""Find the first pass, and its first rewrite, that changes a result.

Pipelines count their rewrites and can stop after any number of them. One run with ``verify="each"``
finds the wrong pass; binary search then finds the wrong rewrite in ``log2(rewrites)`` runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.baseline import Baseline
from smelt.check.changes import node_changes
from smelt.check.version_history import VersionHistory
from smelt.errors import InternalError, SmeltError
from smelt.passes.pipeline import Step
from smelt.passes.run import Observer, PassReport
from smelt.runtime.interface import interface_of

Optimize: TypeAlias = Callable[[ir.Model, int | None, Iterable[Observer]], list[PassReport]]
"""Runs a pipeline in place with observers; the number, if any, limits its rewrites."""


@dataclass(frozen=True)
class Culprit:
    """The first rewrite that changes a result.

    ``rewrite`` counts from 1 over the ``rewrites`` of the pipeline. ``rules`` are the rules that
    fired in it, ``removed`` and ``added`` its nodes, ``models`` the model before and after it.
    """

    pass_text: str
    rewrite: int
    rewrites: int
    rules: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    problems: tuple[str, ...]
    models: tuple[ir.Model, ir.Model] = field(compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON data; ``pass_text`` is named ``pass``."""
        return {
            "pass": self.pass_text,
            "rewrite": self.rewrite,
            "rewrites": self.rewrites,
            "rules": list(self.rules),
            "removed": list(self.removed),
            "added": list(self.added),
            "problems": list(self.problems),
        }

    def __str__(self) -> str:
        """Return the pass, the rewrite, its nodes and the first problems as lines."""
        lines = [
            f"pass {self.pass_text}, rewrite {self.rewrite} of {self.rewrites} in the pipeline",
            *(f"  rule {rule}" for rule in self.rules),
            *(f"  - {node}" for node in self.removed),
            *(f"  + {node}" for node in self.added),
            *(f"  {problem}" for problem in self.problems[:4]),
        ]
        return "\n".join(lines)


def bisect(
    model: ir.Model,
    optimize: Optimize,
    dims: Dims | None = None,
    seed: int = 0,
) -> Culprit | None:
    """Return the first rewrite of a pipeline after which ``model`` computes another result.

    ``optimize`` runs the pipeline on a model. Returns None if every pass, and all passes together,
    stay within the declared exactness. A pipeline that raises counts as wrong from the first
    rewrite limit at which it raises.
    """
    search = _Search(model, optimize, dims, seed)
    full_run = search.attempt(None)
    if not full_run.problems:
        return None
    last_good, first_bad = full_run.good, full_run.edits
    before: _Attempt | None = None
    if full_run.raises:
        first_bad = search.until_it_raises(last_good)
    after: _Attempt | None = None
    while first_bad - last_good > 1:
        middle = (last_good + first_bad) // 2
        attempt = search.attempt(middle, full_run.first)
        if attempt.problems:
            first_bad, after = middle, attempt
        else:
            last_good, before = middle, attempt
    before = before or search.attempt(last_good, full_run.first)
    after = after or search.attempt(first_bad, full_run.first)
    if not after.problems:
        raise InternalError("E911", "a second run of the pipeline gives other results")
    return _culprit(before, after, first_bad, max(first_bad, full_run.rewrites))


def still_wrong(
    culprit: Culprit, optimize: Optimize, dims: Dims | None = None, seed: int = 0
) -> Callable[[ir.Model], bool]:
    """Return a check for ``reduce``: True if the same pass is the first wrong one on a model."""

    def check(model: ir.Model) -> bool:
        """True if the pipeline's first wrong pass on ``model`` is the one of ``culprit``."""
        symbols = interface_of(model).symbols()
        dims_of_model = {name: sizes for name, sizes in (dims or {}).items() if name in symbols}
        try:
            attempt = _Search(model, optimize, dims_of_model or None, seed).attempt(None)
        except SmeltError:
            return False  # the model itself cannot be run
        return bool(attempt.problems) and _guilty_text(attempt) == culprit.pass_text

    return check


class _Attempt:
    """An observer of one pipeline run that compares the model after each pass.

    It starts at pass run ``first`` and stops at the first wrong one. After ``good`` rewrites the
    result was right, after ``edits`` it was wrong; ``rewrites`` counts all.
    """

    def __init__(self, history: VersionHistory, work: ir.Model) -> None:
        """Start before the first pass on ``work``, a copy of the source.

        ``good``, ``edits`` and ``rewrites`` are counts of rewrites: at the last right result, at
        the first wrong one, and so far.
        """
        self.history, self.work = history, work
        self.problems: list[str] = []
        self.guilty: Step | None = None
        self.reports: list[PassReport] = []
        self.good = self.edits = self.rewrites = self.first = 0
        self.raises = False

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Do nothing."""

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Compare the model after the pass, unless an earlier pass was already wrong."""
        self.rewrites += report.stats.rewrites
        self.reports.append(report)
        if self.problems:
            return
        self.good, self.edits = self.edits, self.rewrites
        finding = self.history.follow(step, model, report)
        if finding is not None:
            self.guilty, self.problems = step, finding.problems
            self.first = self.history.runs

    def fail(self, error: SmeltError) -> None:
        """Record that the pipeline raised ``error``."""
        if not self.problems:
            self.raises, self.good, self.first = True, self.edits, self.history.runs + 1
            self.problems = [f"the pipeline fails: {error.what}"]


class _Search:
    """Runs the pipeline on copies of a model; the source itself runs only once."""

    def __init__(self, model: ir.Model, optimize: Optimize, dims: Dims | None, seed: int) -> None:
        """Run ``model`` once; every version of it is compared with this ``baseline``."""
        self.model, self.optimize, self.dims = model, optimize, dims
        self.baseline = Baseline(model, dims, seed)

    def attempt(self, limit: int | None, first: int = 0) -> _Attempt:
        """Run the pipeline on a copy with at most ``limit`` rewrites; return the observed
        attempt.
        """
        work = self.model.clone()
        attempt = _Attempt(VersionHistory(self.baseline, self.dims, first=first), work)
        try:
            self.optimize(work, limit, [attempt])
        except SmeltError as error:
            attempt.fail(error)
        return attempt

    def until_it_raises(self, good: int) -> int:
        """Return a number of rewrites above ``good`` at which the pipeline raises."""
        step = 1
        while not self.attempt(good + step).problems:
            step *= 2
        return good + step


def _culprit(before: _Attempt, after: _Attempt, rewrite: int, total: int) -> Culprit:
    """Build the Culprit from the attempts just before and just after the wrong rewrite."""
    earlier = _fired(before.reports)
    rules_fired = [rule for rule, n in _fired(after.reports).items() if n > earlier.get(rule, 0)]
    removed, added = node_changes(before.work, after.work)
    return Culprit(
        _guilty_text(after),
        rewrite,
        total,
        tuple(rules_fired),
        tuple(removed),
        tuple(added),
        tuple(after.problems),
        (before.work, after.work),
    )


def _guilty_text(attempt: _Attempt) -> str:
    """Return the text of the pass that changed the result, or that the pipeline raised an error."""
    return str(attempt.guilty) if attempt.guilty is not None else "(the pipeline raises)"


def _fired(reports: list[PassReport]) -> dict[str, int]:
    """Return how often each rule fired, over all reports."""
    total: dict[str, int] = {}
    for report in reports:
        for rule, count in report.stats.fired.items():
            total[rule] = total.get(rule, 0) + count
    return total
