"""Every operator with operands and attributes drawn at random: refused, or taken; never E9xx."""

from __future__ import annotations

from math import prod
from random import Random

import onnx
import pytest
from onnx import TensorProto, defs, helper

import smelt
from smelt.errors import SmeltError

OPSET = 20
TYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(int64)": TensorProto.INT64,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(uint8)": TensorProto.UINT8,
    "tensor(int32)": TensorProto.INT32,
}
INTEGERS = (TensorProto.INT64, TensorProto.INT32)
CARRIERS = ("If", "Loop", "Scan", "SequenceMap")


def _operators() -> list[str]:
    names = sorted({s.name for s in defs.get_all_schemas() if s.domain == ""})
    return [name for name in names if defs.has(name, OPSET, "") and name not in CARRIERS]


def _type(formal: defs.OpSchema.FormalParameter) -> int | None:
    return next((number for text, number in TYPES.items() if text in formal.types), None)


def _attribute(schema: defs.OpSchema.Attribute, random: Random) -> object:
    drawn = {
        "INT": random.choice((0, 1, -1, 2, 5, -7)),
        "INTS": [random.choice((0, 1, 2, -1, 3)) for _ in range(random.choice((1, 2, 4)))],
        "FLOAT": 1.0,
        "FLOATS": [1.0],
        "STRING": "constant",
    }
    return drawn.get(schema.type.name)


def draw(name: str, random: Random) -> onnx.ModelProto:
    """One node of the operator, of inputs and constants that need not fit together."""
    schema = defs.get_schema(name, OPSET, "")
    count = max(schema.min_input, random.randrange(len(schema.inputs) + 1))
    names, inputs, weights = [], [], []
    for position, formal in enumerate(schema.inputs[:count]):
        dtype = _type(formal)
        names.append("" if dtype is None else f"x{position}")
        if dtype in INTEGERS and random.random() < 0.6:
            dims = [random.choice((0, 1, 2, 3)) for _ in range(random.choice((0, 1, 1, 1, 2)))]
            numbers = [random.choice((0, 1, -1, 2, -2, 5, -9)) for _ in range(prod(dims))]
            weights.append(helper.make_tensor(names[-1], dtype, dims, numbers))
        elif dtype is not None:
            shape = [
                random.choice((0, 1, 2, 3, "N")) for _ in range(random.choice((0, 1, 1, 2, 3, 4)))
            ]
            known = shape if random.random() < 0.95 else None
            inputs.append(helper.make_tensor_value_info(names[-1], dtype, known))
    chosen = [a for a in schema.attributes.values() if a.required or random.random() < 0.3]
    attributes = {a.name: _attribute(a, random) for a in chosen}
    given = {key: value for key, value in attributes.items() if value is not None}
    results = [f"y{position}" for position in range(max(1, schema.min_output))]
    node = helper.make_node(name, names, results, **given)
    outputs = [helper.make_empty_tensor_value_info(result) for result in results]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    imports = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports)


def check(name: str, numbers: range) -> None:
    for number in numbers:
        model = draw(name, Random(f"{name} {number}"))
        refusal = None
        try:
            smelt.optimize(model)
        except SmeltError as error:
            refusal = error
        assert refusal is None or not refusal.code.startswith("E9"), (number, refusal)


@pytest.mark.parametrize("name", _operators())
def test_a_draw_of_each_operator(name: str) -> None:
    check(name, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", _operators())
def test_more_draws(name: str) -> None:
    check(name, range(1, 16))
