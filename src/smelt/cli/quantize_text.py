"""What ``smelt quantize`` tells about its result, as data and as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from smelt.cli.command import note
from smelt.cli.layout import table

if TYPE_CHECKING:
    from smelt.precision.int8.quantize import Result

SHOWN = 5
"""The most values that the report names with numbers beyond their range; JSON has all."""


def facts(result: Result, sizes: list[int]) -> dict[str, Any]:
    """Return the result as plain data."""
    return {
        "metric": result.metric.name,
        "within": result.limit,
        "error": result.error,
        "bytes": sizes,
        "data": result.note,
        "chosen": [
            {"nodes": list(each.nodes), "operator": each.operator, "form": form}
            for each, form in result.chosen.items()
        ],
        "kept": dict(result.kept),
        "alone": [
            {"node": step.candidate.name, "form": step.form, "error": step.error}
            for step in result.alone
        ],
        "curve": [point._asdict() for point in result.curve],
        "runs": result.runs,
        "method": result.method,
        "ranges": [
            {"value": name, "low": each.low, "high": each.high, "saturated": each.saturated}
            for name, each in result.ranges.items()
        ],
    }


def print_result(result: Result, output: str, sizes: list[int]) -> None:
    """Print the trade, what stays in float and why, and the error."""
    text = result.metric.text
    points = sorted({(each.bytes_saved, each.macs, each.error) for each in result.curve})
    total = max((macs for _, macs, _ in points), default=0)
    rows = [
        (f"{saved:,}", f"{macs / total:.0%}" if total else "-", text(error))
        for saved, macs, error in points
    ]
    note(table(rows, ("bytes saved", "integer products", "error"), stream=sys.stderr))
    for name, why in result.kept.items():
        note(f"in float: {name}: {why}")
    worst = sorted(result.ranges.items(), key=lambda pair: -pair[1].saturated)
    for name, each in worst[:SHOWN]:
        if each.saturated:
            note(
                f"saturates: {name}: {each.saturated:.2%} beyond {each.low:.4g} to {each.high:.4g}"
            )
    note(result.note)
    before, after = sizes
    forms = ", ".join(
        f"{list(result.chosen.values()).count(form)} {form}"
        for form in dict.fromkeys(result.chosen.values())
    )
    note(f"{output}: {forms}, rounded by {result.method}; {before:,} bytes became {after:,}")
    note(f"error {text(result.error)}, within {text(result.limit)} ({result.metric.name})")
