"""Numbers beyond 64 bits: a rule that comes to one does not fire, and nothing raw is raised."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import ResourceLimit
from smelt.ir import text
from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference

LARGE = 2**62
WIDE_PADS = {
    "sum of pads": f"""g (float[N,3,8,W] x, float[4,3,1,1] w) => (y) {{
        p = Constant<value_ints = [0,0,1,{LARGE},0,0,1,0]>() q = Pad(x, p)
        y = Conv<kernel_shape = [1,1], pads = [0,{LARGE},0,1]>(q, w)
    }}""",
    "difference of axes": f"""g (float[2,3] x) => (y) {{
        t = Transpose<perm = [1,0]>(x) y = Softmax<axis = {-(2**63)}>(t)
    }}""",
    "repeats": f"""g (float[2,3] x) => (y) {{
        a = Constant<value_ints = [{2**40},1]>() b = Constant<value_ints = [{2**40},1]>()
        t = Tile(x, a) y = Tile(t, b)
    }}""",
}


@pytest.mark.parametrize("graph", WIDE_PADS.values(), ids=WIDE_PADS.keys())
def test_arithmetic_beyond_64_bits(graph: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 20]> {graph}')
    try:
        smelt.optimize(model).SerializeToString()
    except smelt.errors.SmeltError as error:
        refusal = error
    else:
        return
    assert refusal.code in ("E317", "E501")


@pytest.mark.parametrize(
    "attributes", [{"axis": 2**63}, {"pads": [0, -(2**63) - 1]}, {"pads": [2**64]}], ids=str
)
def test_a_builder_makes_no_attribute_that_a_file_cannot_hold(
    attributes: dict[str, int | list[int]],
) -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", 20)
    builder = Builder(model, model.graph, ShapeInference(model))
    with pytest.raises(ResourceLimit, match="64 bits") as caught:
        builder.op("Pad", model.graph.inputs[0], **attributes)
    assert caught.value.code == "E501"
    assert len(model.graph) == 1


@pytest.mark.parametrize("numbers", [2**63, [0, -(2**63) - 1]], ids=str)
def test_a_builder_makes_no_constant_beyond_64_bits(numbers: int | list[int]) -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", 20)
    builder = Builder(model, model.graph, ShapeInference(model))
    with pytest.raises(ResourceLimit, match="64 bits"):
        builder.const_i64(numbers)


def test_the_limits_themselves_are_held() -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", 20)
    builder = Builder(model, model.graph, ShapeInference(model))
    value = builder.const_i64([2**63 - 1, -(2**63)])
    assert isinstance(value, ir.Value)
    builder.op("Constant", value_ints=[2**63 - 1, -(2**63)])
