"""What smelt tells of small graphs stands in ``graphs.txt``, which is read when an entry changes.

An entry holds multiply-adds, FLOPs, bytes and a digest of what ``inspect`` tells; the consumers
that take the graph whole and a digest of what the others do not take; what differs between the
graph and the optimized graph; a digest of the code that ``inspect --snippet`` prints.
``PYTHONPATH=src:tests python tests/inspection/test_graphs.py`` writes the entries again.
"""

from __future__ import annotations

import json
from pathlib import Path

import onnx_ir as ir
import pytest
from recorded import digest, made_or_refused, parsed, rows, write

import smelt
from smelt.check import structure
from smelt.check.model_diff import model_diff
from smelt.cli.inspect import to_json
from smelt.cli.inspect_text import sections
from smelt.consumers.find import consumers, find_consumers
from smelt.consumers.obstacle import unsupported_nodes
from smelt.consumers.readers import readers
from smelt.ir.shapes.inference import ShapeInference

TABLE = Path(__file__).with_name("graphs.txt")
TIDY = "fixpoint(const-elimination,noop-elimination,dead-code-elimination){max=4}"


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(made_or_refused(lambda way=way: way(parsed(row))) for way in WAYS)


def inspected(model: ir.Model) -> str:
    """Return the work of the graph, and a digest of all that ``inspect`` tells."""
    facts = smelt.inspect(model)
    total = facts.total
    told = [json.dumps(to_json(facts, listed), default=str) for listed in ("nodes", "weights")]
    told += [str(section) for section in sections(facts)]
    names = [symbol.name for symbol in facts.symbols if symbol.inputs]
    if names:
        told.append(json.dumps(to_json(smelt.inspect(model, {names[0]: 3}), None), default=str))
    return f"{total.macs}, {total.flops}, {total.bytes} {digest(*told)}"


def taken(model: ir.Model) -> str:
    """Return the consumers that take the graph, and a digest of what others do not take."""
    ShapeInference(model).infer_model()
    told = []
    for consumer in consumers().values():
        told += map(str, unsupported_nodes(model, consumer))
        chosen = find_consumers(consumer.name)
        told.append(str([chosen.takes(model, node) for node in model.graph]))
    read = readers(model, "onnxruntime>=1.17,ncnn")
    return f"{' '.join(read.taken_by) or '-'} {digest(*told, *read.lines())}"


def diffed(model: ir.Model) -> str:
    """Return the counts of what tidying changes, and a digest of the whole difference."""
    found = model_diff(model, smelt.optimize(model, pipeline=TIDY))
    counts = f"-{len(found.removed)} +{len(found.added)}"
    return f"{counts} {digest(json.dumps(found.to_json()), str(bool(found)))}"


def asserted(model: ir.Model) -> str:
    """Return a digest of the code that asserts the structure of the graph."""
    return digest(structure.snippet(model))


WAYS = (inspected, taken, diffed, asserted)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_what_is_told_of_the_graph_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/inspection/test_graphs.py"


if __name__ == "__main__":
    write(TABLE, entry)
