"""Describe the results of a verification as rows, one for each output and size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smelt.check.agreement import sizes_in_words
from smelt.check.compare import Comparison
from smelt.check.report.shown import shown
from smelt.check.verification import Report
from smelt.check.verification_record import VerificationRecord


def of_evidence(evidence: VerificationRecord) -> dict[str, Any]:
    """Return the data of a pipeline's verification record: how the last version of the model
    compares with its source.
    """
    passes = f"{evidence.passes} pass runs changed something, {evidence.versions} versions were run"
    return {
        "ok": True,
        "title": f"The result against its source, verified {evidence.mode}",
        "facts": [
            f"{passes}, in {evidence.runtime or 'no runtime'}, {evidence.seconds:.1f} s",
            f"the passes declare this difference, which is allowed: {evidence.declared}",
        ],
        "rows": [_row(c, case.sizes, case.inputs) for case, c in evidence.compared],
        "worst": _error(evidence.worst),
    }


def of_report(report: Report) -> dict[str, Any]:
    """Return the data of a ``verify`` report; failed and skipped trials give their reason."""
    rows = []
    for trial in report.trials:
        rows += [_row(item, trial.sizes, trial.inputs) for item in trial.outputs]
        if trial.failure or trial.skipped:
            reason = f"fails: {trial.failure}" if trial.failure else f"skipped: {trial.skipped}"
            problem = Comparison("*", "", problem=reason)
            rows.append(_row(problem, trial.sizes, trial.inputs) | {"ok": not trial.failure})
    return {
        "ok": report.ok,
        "title": f"{shown(report.names[1], 120)} against {shown(report.names[0], 120)}",
        "facts": [f"allowed: {report.tolerance}", *map(shown, report.interface)],
        "rows": rows,
        "worst": _error(report.worst),
    }


def _error(comparison: Comparison) -> dict[str, float]:
    """Return the error of a comparison, absolute and in ulp, and the allowed error."""
    return {"error": comparison.error, "ulp": comparison.ulp, "allowed": comparison.allowed}


def _row(comparison: Comparison, sizes: Mapping[str, int], inputs: str) -> dict[str, Any]:
    """Return one comparison of an output as a row of the table."""
    return {
        "ok": comparison.ok,
        "output": shown(comparison.name, 80),
        "type": shown(comparison.kind, 80),
        "sizes": shown(sizes_in_words(sizes), 120),
        "inputs": inputs,
        **_error(comparison),
        "elements": comparison.elements,
        "failed": comparison.failed,
        "unstable": comparison.unstable,
        "problem": shown(comparison.problem or ("" if comparison.ok else str(comparison))),
    }
