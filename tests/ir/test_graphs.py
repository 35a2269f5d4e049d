"""Graphs are read, raised and lowered as ``graphs.txt`` says, which is read when an entry changes.

An entry holds the graph with its inferred types at its own opset, at the newest, at the lowest, and as
``smelt.load`` checks and reads it, or the errors: types of the results, operators, and a digest of all nodes with the types of their values.
``PYTHONPATH=src:tests python tests/ir/test_graphs.py`` writes the entries again.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest
from recorded import digest, facts, made_or_refused, parsed, rows, write

import smelt
from smelt.ir import text
from smelt.ir.operand_facts.check import refuse_misfits
from smelt.ir.opsets.lower_opset import lower_opset
from smelt.ir.opsets.raise_opset import LOWEST_GOAL, NEWEST_READ, raise_opset
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.verify import problems_of

TABLE = Path(__file__).with_name("graphs.txt")


def entry(row: str) -> str:
    """Return the entry of a row."""
    return " | ".join(made_or_refused(lambda way=way: way(parsed(row))) for way in WAYS)


def inferred(model: ir.Model) -> str:
    """Return the facts of ``model`` with types for all values."""
    ShapeInference(model).infer_model()
    problems = list(problems_of(model))
    return f"{facts(model)} {digest(text.canonical(model), *problems)}"


def raised(model: ir.Model) -> str:
    """Return the facts of ``model`` at the newest opset."""
    raise_opset(model, NEWEST_READ)
    return facts(model)


def lowered(model: ir.Model) -> str:
    """Return the facts of ``model`` at the lowest opset that passes read."""
    lower_opset(model, LOWEST_GOAL)
    return facts(model)


def loaded(model: ir.Model) -> str:
    """Return the facts of ``model`` as it is read from a file, with operands that fit."""
    read = smelt.load(ir.to_proto(model))
    shapes = ShapeInference(read)
    shapes.infer_model()
    refuse_misfits(read, shapes)
    return facts(read)


WAYS = (inferred, raised, lowered, loaded)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_graph_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/ir/test_graphs.py"


if __name__ == "__main__":
    write(TABLE, entry)
