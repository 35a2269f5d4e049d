"""Which pass, and which rewrite of it, changes a result?

The edits of a pipeline are counted, and a pipeline can be stopped after any number of them. So
the first wrong edit is found by halving: ``log2(edits)`` runs, and no script to write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.changes import node_changes
from smelt.check.each import passes_of
from smelt.check.witness import Witness, margin_of
from smelt.errors import InternalError, SmeltError
from smelt.passes.pipeline import Steps
from smelt.passes.run import PassReport

Attempt: TypeAlias = tuple[ir.Model, list[PassReport], list[str]]
"""A model after some rewrites, the reports of its passes, and what is wrong with it."""

Optimize: TypeAlias = Callable[[ir.Model, int | None], list[PassReport]]
"""Runs the pipeline in place, stopping after so many rewrites, if a number is given."""


@dataclass(frozen=True)
class Culprit:
    """The first rewrite that changes a result.

    ``rewrite`` counts from 1 over the whole pipeline of ``rewrites``; ``rules`` are those of the
    pass that fired with it, ``removed`` and ``added`` the nodes it took and made.
    """

    pass_text: str
    rewrite: int
    rewrites: int
    rules: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
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
    steps: Steps,
    optimize: Optimize,
    dims: Dims | None = None,
    seed: int = 0,
) -> Culprit | None:
    """The first rewrite of the pipeline ``steps`` after which ``model`` computes something else.

    ``optimize`` runs the pipeline on a model. Returns None if the whole pipeline keeps the
    results within what its passes declare. A pipeline that raises counts as wrong from the
    rewrite at which it begins to raise.
    """
    witness = Witness(model, dims, seed)
    margin = margin_of(pass_.exactness for pass_ in passes_of(steps))

    def attempt(limit: int | None) -> Attempt:
        work = model.clone()
        try:
            reports = optimize(work, limit)
        except SmeltError as error:
            return work, [], [f"the pipeline fails: {error.what}"]
        return work, reports, witness.judge(work, margin)[0]

    _, reports, problems = attempt(None)
    if not problems:
        return None
    total = sum(report.stats.rewrites for report in reports) or _total_before_failure(attempt)
    good, bad = 0, total
    while bad - good > 1:
        middle = (good + bad) // 2
        if attempt(middle)[2]:
            bad = middle
        else:
            good = middle
    before, after = attempt(good), attempt(bad)
    if not after[2]:
        raise InternalError("E911", "the pipeline gives other results when it is run again")
    return _culprit(before, after, bad, total)


def _total_before_failure(
    attempt: Callable[[int | None], Attempt],
) -> int:
    """A number of rewrites at which a pipeline that raises is sure to raise."""
    limit = 1
    while not attempt(limit)[2]:
        limit *= 2
    return limit


def _culprit(
    before: Attempt,
    after: Attempt,
    rewrite: int,
    total: int,
) -> Culprit:
    changed = [report for report in after[1] if report.changed]
    guilty = changed[-1] if changed else None
    earlier = _fired(before[1])
    fired = [rule for rule, count in _fired(after[1]).items() if count > earlier.get(rule, 0)]
    removed, added = node_changes(before[0], after[0])
    text = guilty.text if guilty is not None else "(the pipeline raises)"
    return Culprit(
        text, rewrite, total, tuple(fired), tuple(removed), tuple(added), tuple(after[2])
    )


def _fired(reports: list[PassReport]) -> dict[str, int]:
    total: dict[str, int] = {}
    for report in reports:
        for rule, count in report.stats.fired.items():
            total[rule] = total.get(rule, 0) + count
    return total
