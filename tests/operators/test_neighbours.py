"""What declared operators say of operands near valid ones stands in ``neighbours.txt``.

A row is the name of an operator. Operands of its first graph in ``bodies.txt`` change one by one:
no shape, no dims, one dim more or less, each size open, larger, 1 or 0, other element types, an
attribute one more or less. The entry has how many changes are refused, and a digest of all reasons
and results. ``PYTHONPATH=src:tests python tests/operators/test_neighbours.py`` writes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import onnx_ir as ir
import pytest
from operators.test_bodies import lines
from recorded import digest, rows, write

from smelt.errors import ErrorList, SmeltError
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.registry import OPERATORS

TABLE = Path(__file__).with_name("neighbours.txt")
Change = Callable[[ir.Model], None]


@cache
def graphs() -> dict[str, str]:
    """Return the first valid graph of each operator that ONNX lacks."""
    found: dict[str, str] = {}
    for graph, entry in lines():
        for node in text.parse("g " + graph).graph:
            if (
                node.domain
                and ":" in entry.partition(" 1*")[0]
                and not entry.strip().startswith("E")
            ):
                found.setdefault(f"{node.domain}.{node.op_type}", graph)
    return found


def changes(model: ir.Model) -> Iterator[Change]:
    """Yield each change of an operand or attribute of the node."""
    for place, value in enumerate(model.graph.inputs):
        dims = list(value.shape.dims) if value.shape is not None else []
        for other in shapes(dims):
            yield lambda m, place=place, other=other: _reshape(m, place, other)
        for dtype in (ir.DataType.DOUBLE, ir.DataType.INT32):
            yield lambda m, place=place, dtype=dtype: _retype(m, place, dtype)
    for node in model.graph:
        for name, attribute in node.attributes.items():
            if attribute.type == ir.AttributeType.INT:
                for by in (-1, 1):
                    number = attribute.as_int() + by
                    yield lambda m, name=name, number=number: _set(m, name, number)


def shapes(dims: list[int | ir.SymbolicDim]) -> Iterator[list[object] | None]:
    """Yield the shapes near ``dims``; None is an unknown shape."""
    yield from (None, [], [2, *dims], [*dims, "K"], dims[1:], ["A"] * len(dims))
    for place, dim in enumerate(dims):
        for size in ("K", 0, 1, dim + 1 if isinstance(dim, int) else 3):
            yield [*dims[:place], size, *dims[place + 1 :]]


def _reshape(model: ir.Model, place: int, dims: list[int] | None) -> None:
    model.graph.inputs[place].shape = None if dims is None else ir.Shape(dims)


def _retype(model: ir.Model, place: int, dtype: ir.DataType) -> None:
    model.graph.inputs[place].type = ir.TensorType(dtype)


def _set(model: ir.Model, name: str, number: int) -> None:
    for node in model.graph:
        node.attributes[name] = ir.AttrInt64(name, number)


def said(graph: str, change: Change) -> str:
    """Return the types of the results after a change, or why it is refused."""
    model = text.parse("g " + graph)
    for value in model.graph.outputs:
        value.shape, value.type = None, None
    change(model)
    try:
        ShapeInference(model).infer_model()
    except SmeltError as error:
        errors = error.errors if isinstance(error, ErrorList) else (error,)
        return "refused " + " ".join(f"{each.code} {each.why}" for each in errors)
    return ", ".join(text.type_of(value) for value in model.graph.outputs)


def entry(name: str) -> str:
    """Return the entry of an operator."""
    OPERATORS.fill()
    graph = graphs()[name]
    answers = [said(graph, change) for change in changes(text.parse("g " + graph))]
    refused = sum(answer.startswith("refused") for answer in answers)
    return f"{refused} of {len(answers)} refused {digest(*answers)}"


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_operators_say_of_other_operands_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/operators/test_neighbours.py"


def test_every_operator_of_the_other_table_is_here() -> None:
    assert {*graphs()} == {row for row, _ in rows(TABLE)}


if __name__ == "__main__":
    TABLE.write_text("".join(f"{name}\n    x\n" for name in sorted(graphs())), encoding="utf-8")
    write(TABLE, entry)
