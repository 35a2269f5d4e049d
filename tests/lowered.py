"""Lower ONNX text to a Program."""

from __future__ import annotations

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.program.instruction import Program
from smelt.program.lower import lower
from smelt.program.passes import last_use


def lowered(source: str, opset: int = 23) -> Program:
    """The Program of a graph in ONNX text, its shapes inferred first, ready to be planned."""
    model = text.parse(source, opset=opset)
    ShapeInference(model).infer_model()
    program = lower(model)
    last_use.run(program)
    return program


def only(source: str, opset: int = 23) -> dict[str, object]:
    """The attributes of the only instruction of a graph."""
    (instruction,) = lowered(source, opset).instructions
    return dict(instruction.attributes)
