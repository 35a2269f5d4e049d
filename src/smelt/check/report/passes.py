"""Describe the runs of passes and their near misses as data for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from smelt.check.report.shown import shown
from smelt.ir.interface_change import OpsetChanged
from smelt.passes.pipeline import Step
from smelt.passes.run import PassReport

Runs = Sequence[tuple[Step, PassReport]]


def passes_of(runs: Runs) -> list[dict[str, Any]]:
    """Return one entry for each pass run, in order, without near misses."""
    return [
        {
            "pass": shown(report.text),
            "summary": shown(step.pass_.summary.replace("``", "")),
            "seconds": report.seconds,
            "nodes": [report.nodes_before, report.nodes_after],
            "rewrites": report.stats.rewrites,
            "rules": {shown(rule, 80): count for rule, count in report.stats.fired.items()},
            "exactness": shown(str(report.exactness)),
            "interface": [shown(str(change)) for change in report.stats.interface],
        }
        for step, report in runs
    ]


def near_misses_of(runs: Runs) -> list[dict[str, Any]]:
    """Return the near misses in the last run of each pass, which still hold for the result."""
    last = {report.text: report for _, report in runs}
    return [
        {
            "pass": shown(text),
            "rule": shown(rule, 80),
            "why": shown(why),
            "count": count,
            "node": shown(report.stats.example[rule, why]),
        }
        for text, report in last.items()
        for (rule, why), count in report.stats.missed.most_common()
    ]


def operators_of(before: dict[str, Any], after: dict[str, Any]) -> list[list[Any]]:
    """Return ``[operator, nodes before, nodes after]``, the most frequent operators first."""
    counts = [Counter(node["op"] for node in side["nodes"]) for side in (before, after)]
    names = sorted(counts[0] | counts[1], key=lambda op: (-max(c[op] for c in counts), op))
    return [[name, counts[0][name], counts[1][name]] for name in names]


def keep_known_types(before: dict[str, Any], after: dict[str, Any], runs: Runs) -> None:
    """Give the outputs after the passes the types that were inferred before the passes.

    The result has the types that the file declares, which may lack dims or have other symbol names.
    Nothing is changed if a pass changed the interface on request.
    """
    if any(not isinstance(c, OpsetChanged) for _, r in runs for c in r.stats.interface):
        return
    for old, new in zip(before["outputs"], after["outputs"], strict=False):
        after["values"][new][1] = before["values"][old][1]


def interface_of(before: dict[str, Any], after: dict[str, Any]) -> list[list[str]]:
    """Return ``[port, name, type before, type after]`` of the inputs, then the outputs."""
    rows = []
    for kind in ("inputs", "outputs"):
        sides = [[side["values"][number] for number in side[kind]] for side in (before, after)]
        for index, (old, new) in enumerate(zip_longest(*sides, fillvalue=["none", "none"])):
            name = new[0] if old[0] == new[0] else f"{old[0]} → {new[0]}"
            rows.append([f"{kind[:-1]} {index}", name, old[1], new[1]])
    return rows[:400]
