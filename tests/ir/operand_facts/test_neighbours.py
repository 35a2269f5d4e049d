"""Each size and number of a valid node, one larger and one smaller: some contradict the operator.

``neighbours.txt`` has two lines per node: the node, and the changes that are refused. ``b1+`` means
that dim 1 of operand b is one larger, ``b^`` that b has one more dim in front, ``bv`` that b has no
dim 0, ``group-`` that this attribute is one less, ``pads2+`` that its element 2 is one larger, and
``axes^`` that its last element stands there twice. A constant has the name of its value.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.operand_facts.check import misfit

ENTRIES = (Path(__file__).parent / "neighbours.txt").read_text().strip().split("\n\n")
BY = ((1, "+"), (-1, "-"))


def sizes(value: ir.Value) -> Iterator[tuple[str, list[int]]]:
    """Yield the name of each change of a shape, and the dims."""
    dims = [int(dim) for dim in value.shape or ()]
    for place in range(len(dims)):
        for by, sign in BY:
            yield (
                f"{value.name}{place}{sign}",
                [*dims[:place], dims[place] + by, *dims[place + 1 :]],
            )
    yield f"{value.name}^", [1, *dims]
    if dims:
        yield f"{value.name}v", dims[1:]


def numbers(node: ir.Node, attr: ir.Attr) -> Iterator[tuple[str, ir.Attr]]:
    """Yield the name of each change of an attribute of numbers, and the attribute."""
    name = node.outputs[0].name if node.op_type == "Constant" else attr.name
    if attr.type == ir.AttributeType.INT:
        for by, sign in BY:
            yield f"{name}{sign}", ir.AttrInt64(attr.name, attr.as_int() + by)
    elif attr.type in (ir.AttributeType.INTS, ir.AttributeType.FLOATS):
        given = list(attr.value)
        for place in range(len(given)):
            for by, sign in BY:
                changed = [*given[:place], given[place] + by, *given[place + 1 :]]
                yield f"{name}{place}{sign}", ir.Attr(attr.name, attr.type, changed)
        yield f"{name}^", ir.Attr(attr.name, attr.type, [*given, given[-1]])


def refused(graph: ir.Graph, opset: int) -> Iterator[str]:
    """Yield the names of the changes that contradict an operator."""
    for value in graph.inputs:
        shape = value.shape
        for name, dims in sizes(value):
            value.shape = ir.Shape(dims)
            if misfit(graph, lambda value: None, opset):
                yield name
        value.shape = shape
    for node in graph:
        for attr in list(node.attributes.values()):
            for name, changed in numbers(node, attr):
                node.attributes[attr.name] = changed
                if misfit(graph, lambda value: None, opset):
                    yield name
            node.attributes[attr.name] = attr


@pytest.mark.parametrize("entry", ENTRIES)
def test_changes_that_contradict_the_operator(entry: str) -> None:
    node, expected = entry.split("\n")
    opset, _, graph = node.removeprefix("opset ").partition(": ")
    model = text.parse(f"g {graph}", int(opset))
    assert misfit(model.graph, lambda value: None, int(opset)) is None
    assert list(refused(model.graph, int(opset))) == expected.split()[1:]
