"""An absent attribute is lowered like one that is written with its default."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import onnx_ir as ir
import pytest

from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.program.lower import lower

NODES = Path(__file__).parents[2] / "ir" / "operand_facts" / "neighbours.txt"
FLOAT = re.compile(r"\d+\.\d+(e-\d+)?")
ENTRIES = [entry.split("\n")[0] for entry in NODES.read_text().strip().split("\n\n")]


def defaults(node: ir.Node, opset: int) -> dict[str, ir.Attr]:
    """Return the attributes that the node leaves out, with the defaults of its schema."""
    schema = onnx.defs.get_schema(node.op_type, opset)
    given = {
        name: each.default_value for name, each in schema.attributes.items() if not each.required
    }
    return {
        name: ir.from_proto(value)
        for name, value in given.items()
        if name not in node.attributes and value.type != onnx.AttributeProto.UNDEFINED
    }


def told(model: ir.Model) -> object:
    """Return the instructions and slots, or the error.

    Floats are rounded, because attributes have 32 bits.
    """
    copy = model.clone()
    try:
        ShapeInference(copy).infer_model()
        program = lower(copy)
    except SmeltError as error:
        return str(error)
    steps = " ".join(map(str, program.instructions))
    rounded = FLOAT.sub(lambda found: f"{float(found[0]):.5g}", steps)
    return rounded, [str(each.shape) for each in program.slots]


@pytest.mark.parametrize("entry", ENTRIES)
def test_defaults(entry: str) -> None:
    opset, _, graph = entry.removeprefix("opset ").partition(": ")
    model = text.parse(f"g {graph}", int(opset))
    plain = told(model)
    for node in model.graph:
        for name, attr in defaults(node, int(opset)).items():
            node.attributes[name] = attr
            assert told(model) == plain, (node.op_type, name)
            del node.attributes[name]
