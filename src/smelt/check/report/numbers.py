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
    """Return the data of a pipeline's verification record, for its last version."""
    passes = f"{evidence.passes} pass runs changed something, {evidence.versions} versions were run"
    return {
        "ok": True,
        "title": f"The result against its source, verified {evidence.mode}",
        "facts": [
            f"{passes}, in {evidence.runtime or 'no runtime'}, {evidence.seconds:.1f} s",
            f"allowed is what the passes declare: {evidence.declared}",
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
            words = f"fails: {trial.failure}" if trial.failure else f"skipped: {trial.skipped}"
            problem = Comparison("*", "", problem=words)
            rows.append(_row(problem, trial.sizes, trial.inputs) | {"ok": not trial.failure})
    return {
        "ok": report.ok,
        "title": f"{shown(report.names[1], 120)} against {shown(report.names[0], 120)}",
        "facts": [f"allowed: {report.tolerance}", *map(shown, report.interface)],
        "rows": rows,
        "worst": _error(report.worst),
    }


def _error(found: Comparison) -> dict[str, float]:
    return {"error": found.error, "ulp": found.ulp, "allowed": found.allowed}


def _row(found: Comparison, sizes: Mapping[str, int], inputs: str) -> dict[str, Any]:
    """Return one comparison as a row."""
    return {
        "ok": found.ok,
        "output": shown(found.name, 80),
        "type": shown(found.kind, 80),
        "sizes": shown(sizes_in_words(sizes), 120),
        "inputs": inputs,
        **_error(found),
        "elements": found.elements,
        "failed": found.failed,
        "unstable": found.unstable,
        "problem": shown(found.problem or ("" if found.ok else str(found))),
    }
