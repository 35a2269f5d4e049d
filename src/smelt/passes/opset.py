"""Raise or lower the opset of a model, and replace what ONNX Runtime lacks, around a pipeline.

Passes do the work, so reports, observers and verification see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import onnx_ir as ir

from smelt.errors import ErrorList
from smelt.ir.opsets.raise_opset import LOWEST_GOAL
from smelt.passes import pipeline as language
from smelt.passes.base import PassContext
from smelt.passes.first_opsets import FIRST
from smelt.passes.interface.lower_opset import lower_opset
from smelt.passes.interface.raise_opset import Opset, raise_opset
from smelt.passes.pipeline import Step
from smelt.passes.run import Observer, PassReport, run

GAP_ROUNDS = 4
"""Limit of rounds that replace operators that ONNX Runtime lacks; passes may recreate them."""


def bring_to_opset(
    cx: PassContext, opset: int | None, watching: Sequence[Observer]
) -> list[PassReport]:
    """Bring the model to ``opset``; if that is None, to the lowest that rules support, if possible.

    Raises ErrorList if an operator has no form at a requested ``opset``.
    """
    current = cx.model.opset_imports.get("", LOWEST_GOAL)
    if opset is not None and opset < current:
        return [report for report in run(cx, _lowering(opset), watching) if report.changed]
    if current >= (LOWEST_GOAL if opset is None else opset):
        return []
    step = Step(raise_opset, Opset(to=LOWEST_GOAL if opset is None else opset))
    try:
        return run(cx, (step,), watching)
    except ErrorList:
        if opset is not None:
            raise
        return []


def _lowering(opset: int) -> language.Steps:
    """Return the passes that lower a model to ``opset``.

    Constants are folded first, since older operators need constant axes, and attention is expanded
    by smelt's own pass, whose result is smaller than ONNX's function body.
    """
    before = "const-elimination" + (",expand-attention" if opset < FIRST["Attention"] else "")
    return (*language.parse(before), Step(lower_opset, Opset(opset)))


def widen_bfloat16(cx: PassContext, watching: Sequence[Observer]) -> list[PassReport]:
    """Compute in float32 where ONNX Runtime has no kernel for bfloat16; return what changed."""
    steps = language.parse("widen-half{types=bfloat16}")
    return [report for report in run(cx, steps, watching) if report.changed]


def raise_where_needed(
    cx: PassContext,
    reports: Sequence[PassReport],
    highest: int,
    limit: Callable[[ir.Model, int], int],
    watching: Sequence[Observer],
) -> PassReport | None:
    """Raise the model to the highest opset that a near miss of ``reports`` needed; None if none
    fits.

    The limit is ``highest`` or ``limit(model, highest)``, whichever is lower: runtimes have kernels
    up to there.
    """
    current = cx.model.opset_imports.get("", highest)
    needed = {need for report in reports for need in report.stats.needs}
    if any(current < need <= highest for need in needed):
        highest = min(highest, limit(cx.model, highest))
    for goal in sorted(needed, reverse=True):
        if not current < goal <= highest:
            continue
        raised_past = range(current + 1, goal + 1)
        requesting = [r.name for r in reports if any(need in raised_past for need in r.stats.needs)]
        names = tuple(name.replace("_", "-") for name in dict.fromkeys(requesting))
        try:
            [report] = run(cx, (Step(raise_opset, Opset(goal, names)),), watching)
        except ErrorList:
            continue  # an operator of the model has no form in that opset
        return report if report.changed else None
    return None


def without_gaps(
    cx: PassContext,
    steps: language.Steps,
    earlier: Iterable[PassReport],
    watching: Sequence[Observer],
    *,
    functions: bool = False,
) -> list[PassReport]:
    """Replace operators that ONNX Runtime lacks, rerun ``steps``, and repeat; return the new
    reports.

    Steps that changed the interface in ``earlier`` reports do not run again. ``functions`` keeps
    declared operators, which are then written as functions.
    """
    changed_interface = {report.text for report in earlier if report.stats.interface}
    reports: list[PassReport] = []
    replacement = language.parse(f"replace-runtime-gaps{{functions={str(functions).lower()}}}")
    for _ in range(GAP_ROUNDS):
        replacing = list(run(cx, replacement, watching))
        if not any(report.stats.fired for report in replacing):
            break
        reports += [
            *replacing,
            *run(cx, language.without_steps(steps, changed_interface), watching),
        ]
    return reports
