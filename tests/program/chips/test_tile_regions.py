"""Which parts of the operands a part of a product reads, whatever stands beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.program.chips.tile_regions import product
from smelt.program.lower import lower

GRAPH = """g (float[7,2,3] a, float[7,3,5] b) => (float[7,2,5] y) { y = MatMul(a, b) }"""


@pytest.mark.parametrize("further", [0, 1, 2])
@pytest.mark.parametrize(
    ("axis", "parts"),
    [(0, {0: {0: (1, 2)}, 1: {0: (1, 2)}}), (1, {0: {1: (1, 2)}}), (2, {1: {2: (1, 2)}})],
)
def test_parts_of_a_product(axis: int, parts: dict, further: int) -> None:
    model = text.parse(GRAPH)
    ShapeInference(model).infer_model()
    program = lower(model)
    [dot] = [each for each in program.instructions if each.op == "DotGeneral"]
    beside = replace(dot, inputs=(*dot.inputs[:2], *[dot.inputs[0]] * further))
    region = product(program, beside, axis, 1, 2)
    assert region is not None
    assert region.boxes == parts
