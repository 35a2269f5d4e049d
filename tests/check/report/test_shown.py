"""What the report shows of small graphs stands in ``graphs.txt``, which is read when an entry changes.

Two underscores in the name of a node stand for a slash. An entry holds the nodes before and after the default passes with the groups that they stand in, a
digest of the page's data, the part that the picture shows, and a digest of the picture; then the
same of a page that compares the two models.
``PYTHONPATH=src:tests python tests/check/report/test_shown.py`` writes the entries again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
from recorded import digest, made_or_refused, parsed, rows, write

import smelt
from smelt.check.report.layer import part_of
from smelt.ir import scope

TABLE = Path(__file__).with_name("graphs.txt")
TIMES = re.compile(r'"(seconds|begin|end|time)": [\d.e-]+')


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(made_or_refused(lambda way=way: way(named(row))) for way in WAYS)


def named(row: str) -> ir.Model:
    """Return the model of a row, with slashes in the names of its nodes."""
    model = parsed(row)
    for node in scope.nodes(model):
        node.name = (node.name or "").replace("__", "/")
    return model


def optimized(model: ir.Model) -> str:
    """Return what the report of a run of the default passes shows."""
    report = smelt.HtmlReport("a title")
    smelt.optimize(model, observers=[report], pipeline="freeze-defaults,default")
    return told(report)


def compared(model: ir.Model) -> str:
    """Return what the report of two models shows that no pass connects."""
    report = smelt.HtmlReport()
    report.compare(model, smelt.optimize(model, pipeline="freeze-defaults,default"), ("a", "b"))
    return told(report)


def told(report: smelt.HtmlReport) -> str:
    """Return the groups of nodes, a digest of the data, and what the picture shows."""
    found = report.document()
    found.pop("version")
    found["passes"] = [each for each in found["passes"] if each["rewrites"]]
    data = TIMES.sub("", json.dumps(found))
    part = part_of(found["before"], found["after"])
    sides = ", ".join(shown(found[side]) for side in ("before", "after"))
    picture = f"{'/'.join(part.path) or '-'} {part.before} {part.after}"
    return f"{sides} {digest(data)}; {picture} {digest(report.to_svg())}"


WAYS = (optimized, compared)


def shown(side: dict[str, Any]) -> str:
    """Return the nodes of one side by their groups."""

    def text(tree: Any) -> str:
        if isinstance(tree, int):
            node = side["nodes"][tree]
            return f"{node['op']}{'!' if 'state' in node else ''}"
        inner = " ".join(map(text, tree["kids"]))
        name = text(tree["node"]) if "node" in tree else tree.get("name", "body")
        return f"{name}({inner})"

    return " ".join(map(text, side["tree"])) or "-"


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_report_shows_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/check/report/test_shown.py"


if __name__ == "__main__":
    write(TABLE, entry)
