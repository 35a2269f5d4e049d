"""Graphs are read, raised and lowered as ``graphs.txt`` says, which is read when an entry changes.

An entry holds the graph with its inferred types at its own opset, at the newest, at the lowest, and as
``smelt.load`` checks and reads it, or the errors: types of the results, operators, and a digest of all nodes with the types of their values.
Then a digest of what is proved of its values, and one of its parts if a target takes every third node.
``PYTHONPATH=src:tests python tests/ir/test_graphs.py`` writes the entries again.
"""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir
import pytest
from recorded import digest, facts, made_or_refused, parsed, rows, write

import smelt
from smelt.ir import scope, text
from smelt.ir.constants import Constants
from smelt.ir.listing import listing
from smelt.ir.operand_facts.check import refuse_misfits
from smelt.ir.opsets.lower_opset import lower_opset
from smelt.ir.opsets.raise_opset import LOWEST_GOAL, NEWEST_READ, raise_opset
from smelt.ir.partition import body_of, models_of_parts, partition
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.slices import cuts_of
from smelt.ir.value_facts.affine_proof import AffineProof
from smelt.ir.value_facts.dim_from_shape import dim_from_shape
from smelt.ir.value_facts.element_ranges import ranges_of
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.value_facts.relative_readers import reads_relative_error
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


def proved(model: ir.Model) -> str:
    """Return a digest of what is proved of the integers of each value, and of its readers."""
    ShapeInference(model).infer_model()
    if problems := list(problems_of(model)):
        return digest(*problems)
    constants = Constants()
    bounds, forms = IntegerBounds(), AffineProof(constants)
    told = []
    for node in scope.nodes(model):
        if node.op_type == "Slice" and not node.domain:
            told.append(str(cuts_of(node, constants)))
        for value in node.outputs:
            facts_of_value = (
                *(bounds.of(value), bounds.limits(value), forms.of(value)),
                *(ranges_of(value), dim_from_shape(value), reads_relative_error(value)),
            )
            told.append(str(facts_of_value))
    return digest(*told)


def parted(model: ir.Model) -> str:
    """Return a digest of the parts of ``model`` for a target that takes two of three nodes, and
    of the models of those whose parts of three nodes are no gain."""
    ShapeInference(model).infer_model()
    numbers = {node: number for number, node in enumerate(scope.nodes(model))}
    bodies = [str(listing(body_of(model, each)[0])) for each in list(scope.graphs(model))[1:2]]
    parts = partition(
        model.graph, lambda node: numbers[node] % 3 > 0, lambda nodes: float(len(nodes) == 3)
    )
    sides = [str((part.taken, part.reads, part.writes, part.extra)) for part in parts]
    return digest(*bodies, *sides, *map(str, map(listing, models_of_parts(model, parts))))


WAYS = (inferred, raised, lowered, loaded, proved, parted)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_graph_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/ir/test_graphs.py"


if __name__ == "__main__":
    write(TABLE, entry)
