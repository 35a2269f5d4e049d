"""Element types that schemas tell, before any shape is inferred."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.value_facts.element_type import ElementTypes, first_opset, type_by_schema

TYPES = {
    "the type of an operand": ("y = Neg(x)", "FLOAT16"),
    "through several operators": ("a = Neg(x) d = Abs(a) y = Relu(d)", "FLOAT16"),
    "the type that a Cast names": ("y = Cast<to=7>(x)", "INT64"),
    "the type that an attribute names": ("y = RandomNormal<shape=[2], dtype=11>()", "DOUBLE"),
    "a constant": ("y = Constant<value = int8[1] {1}>()", "INT8"),
    "a result of one type": ("y = Shape(x)", "INT64"),
    "a comparison": ("y = Less(x, x)", "BOOL"),
    "the type of the second operand": ("y = Where(b, x, x)", "FLOAT16"),
    "the type that an operand known later has": ("a = f.Other(x) y = Add(a, x)", "FLOAT16"),
    "the second result": ("v, y = TopK(x, k)", "INT64"),
    "the third of variadic results": ("u, v, y = Split<num_outputs=3>(x)", "FLOAT16"),
    "of an unknown operator": ("y = f.Other(x)", None),
    "of a result that no operand decides": ("y = If<then_branch = t () => (p) { p = Neg(x) }, "
        "else_branch = e () => (q) { q = Abs(x) }>(b)", None),
}  # fmt: skip


@pytest.mark.parametrize(("body", "name"), TYPES.values(), ids=TYPES)
def test_the_type_of_a_result(body: str, name: str | None) -> None:
    model = text.parse(f"g (float16[3] x, int64[1] k, bool[3] b) => () {{ {body} }}", 23)
    values = {value.name: value for node in model.graph for value in node.outputs}
    found = ElementTypes(23).of(values["y"])
    assert found == (None if name is None else ir.DataType[name])


def test_types_are_noted_where_there_are_none() -> None:
    model = text.parse("g (float16[3] x) => () { a = Neg(x) b = f.Other(x) c = Shape(x) }", 23)
    values = [node.outputs[0] for node in model.graph]
    values[2].type = ir.TensorType(ir.DataType.INT32)
    ElementTypes(23).note([*values, None])
    assert [value.dtype for value in values] == [ir.DataType.FLOAT16, None, ir.DataType.INT32]


@pytest.mark.parametrize(
    ("body", "name"), [("y = Cast<to=6>(x)", "INT32"), ("y = Neg(x)", "FLOAT16")]
)
def test_one_node_by_its_schema(body: str, name: str) -> None:
    (node,) = text.parse(f"g (float16[3] x) => () {{ {body} }}", 23).graph
    assert type_by_schema(node, node.outputs[0], 23) == ir.DataType[name]


def test_the_first_opset_of_a_type() -> None:
    named = ("FLOAT", "BFLOAT16", "FLOAT8E5M2", "INT4", "STRING", "COMPLEX64")
    found = {name: first_opset(ir.DataType[name]) for name in named}
    assert found == {"FLOAT": 1, "BFLOAT16": 13, "FLOAT8E5M2": 19, "INT4": 21, "STRING": 9, "COMPLEX64": 0}  # fmt: skip
