"""Passes make of graphs what ``graphs.txt`` says, which is read when an entry changes.

An entry holds what the default passes make, and what those by request make before them where all
operators are allowed: the types of the results, the operators, and a digest of all nodes with the
types of their values; then the passes that rewrote something, and a digest of their rules, near
misses and exactness. ``PYTHONPATH=src:tests python tests/passes/test_graphs.py`` writes the entries
again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import digest, facts, made_or_refused, parsed, rows, write

from smelt.compiler import optimize_model
from smelt.passes.registry import passes

TABLE = Path(__file__).with_name("graphs.txt")

LEFT_OUT = ("raise-opset", "lower-opset")
"""Passes that ``tests/ir/test_graphs.py`` runs on their own."""

REQUESTED = [p.spelling for p in passes().values() if not p.default and p.spelling not in LEFT_OUT]
OPERATORS = frozenset(key for each in passes().values() for key in each.makes)


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(
        made_or_refused(lambda pipeline=pipeline, makes=makes: optimized(row, pipeline, makes))
        for pipeline, makes in (
            ("default", frozenset()),
            (",".join([*REQUESTED, "default"]), OPERATORS),
        )
    )


def optimized(row: str, pipeline: str, makes: frozenset[tuple[str, str]]) -> str:
    """Return the facts of the graph after ``pipeline``, and what its passes say."""
    model = parsed(row)
    reports = optimize_model(model, pipeline=pipeline, operators=makes)
    changed = " ".join(f"{each.stats.rewrites}*{each.name}" for each in reports if each.changed)
    told = [
        f"{report.name} {report.exactness} {report.stats.fired} {report.stats.example}"
        f" {report.stats.missed} {report.stats.interface}"
        for report in reports
        if report.changed or report.stats.missed
    ]
    return f"{facts(model)} by {changed} {digest(*told)}"


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_passes_make_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/passes/test_graphs.py"


if __name__ == "__main__":
    write(TABLE, entry)
