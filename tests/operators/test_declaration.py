"""A declaration that cannot work is refused where it stands, and breaks nobody else's compile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import InvalidModel, UsageError
from smelt.ir import text
from smelt.operators import register
from smelt.operators.declare import Attribute, Operator, Result
from smelt.operators.registry import OPERATORS
from smelt.targets.base import Artifact, Target


def infer(inputs: Any, attributes: Any) -> tuple[Result, ...]:
    return (Result(inputs[0].dtype, inputs[0].shape),)


RIGHT: dict[str, Any] = {
    "domain": "vendor.declaration",
    "name": "Right",
    "inputs": ("x", "bias?"),
    "outputs": ("y",),
    "infer": infer,
    "reference": lambda inputs, attributes: (inputs[0],),
}

SLIPS = {
    "no domain": {"domain": ""},
    "the domain of ONNX": {"domain": "ai.onnx"},
    "a domain that is code": {"domain": "a b;"},
    "no text as a domain": {"domain": 3},
    "no name": {"name": ""},
    "a name that is code": {"name": "x); system("},
    "a word for a tuple of inputs": {"inputs": "x"},
    "a list of inputs": {"inputs": ["x"]},
    "two inputs of one name": {"inputs": ("x", "x")},
    "outputs left out": {"outputs": ()},
    "a number as output": {"outputs": (1,)},
    "types for attributes": {"attributes": (ir.AttributeType.INT,)},
    "an attribute for a tuple": {"attributes": Attribute("a", ir.AttributeType.INT)},
    "two attributes of one name": {
        "attributes": (Attribute("a", ir.AttributeType.INT), Attribute("a", ir.AttributeType.INT))
    },
    "a text for an attribute's type": {"attributes": (Attribute("a", "INT"),)},  # type: ignore[arg-type]
    "a graph as an attribute": {"attributes": (Attribute("a", ir.AttributeType.GRAPH),)},
    "a default of another type": {"attributes": (Attribute("a", ir.AttributeType.INTS, 3),)},
    "a text for a shape rule": {"infer": "infer"},
    "a shape rule of one argument": {"infer": lambda inputs: ()},
    "a reference of three arguments": {"reference": lambda a, b, c: ()},
    "no reference": {"reference": None},
    "a body without a builder": {"body": lambda inputs, attributes: ()},
    "a text for a version": {"version": "1"},
    "version 0": {"version": 0},
    "a text for an opset": {"opset": "13"},
    "a tuple for any_rank": {"any_rank": (1,)},
    "a function for a summary": {"summary": infer},
}


def test_the_right_one_is_taken() -> None:
    assert Operator(**RIGHT).key == ("vendor.declaration", "Right")


@pytest.mark.parametrize("slip", SLIPS.values(), ids=SLIPS.keys())
def test_a_slip_is_refused_where_it_stands(slip: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Operator(**RIGHT | slip)
    assert caught.value.code == "E644"
    assert next(iter(slip)).rstrip("s") in str(caught.value)


def test_all_slips_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Operator(**RIGHT | {"outputs": (), "version": "1", "infer": None})
    assert all(word in str(caught.value) for word in ("outputs:", "version:", "infer:"))


def test_arguments_are_given_by_name() -> None:
    with pytest.raises(TypeError, match="positional"):
        Operator("vendor.declaration", "Right", ("x",), ("y",))  # type: ignore[misc]


MODEL = "g (float[4] x) => (float[4] y) { a = vendor.declaration.%s(x) y = Neg(a) }"


def vendor(operator: Operator) -> Target:
    emit = lambda plan: Artifact("vendor", plan.model, {}, plan)  # noqa: E731
    return Target(name="vendor", summary="", emit=emit, operators=(operator,))


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("Tuple", lambda inputs, attributes: ((inputs[0].dtype, inputs[0].shape),)),
        ("Nothing", lambda inputs, attributes: None),
        ("TooFew", lambda inputs, attributes: ()),
        ("Raises", lambda inputs, attributes: inputs[7]),
        ("Shape", lambda inputs, attributes: (Result(inputs[0].dtype, (4,)),)),  # type: ignore[arg-type]
    ],
)
def test_a_shape_rule_that_breaks_its_word_names_itself_and_stops_no_other(
    name: str, rule: Any
) -> None:
    target = vendor(Operator(**RIGHT | {"name": name, "infer": rule}))
    with pytest.raises(UsageError) as caught:
        smelt.compile(text.parse(MODEL % name), target=target)
    assert caught.value.code == "E646"
    assert f"vendor.declaration.{name}" in str(caught.value)
    other = smelt.compile(
        text.parse("g (float[4] x) => (float[4] y) { y = Neg(x) }"), target="host"
    )
    np.testing.assert_array_equal(other(np.ones(4, np.float32))[0], -np.ones(4))


def test_registering_twice_is_no_change() -> None:
    operator = Operator(**RIGHT)
    register(operator)
    register(operator)


WITH_ATTRIBUTES = {
    f"{each.domain}.{each.name}": each for each in OPERATORS.values() if each.attributes
}
VALUES = {"INT": 1, "INTS": [1, 1], "FLOAT": 1.0, "FLOATS": [1.0], "STRING": "a", "STRINGS": ["a"]}


def node_of(operator: Operator, attributes: Mapping[str, ir.Attr | None]) -> ir.Node:
    """Return a node with all operands and results; required attributes have some value."""
    required = {
        each.name: ir.Attr(each.name, each.type, VALUES[each.type.name])
        for each in operator.attributes
        if each.required
    }
    inputs = [ir.Value(name=name) for name in operator.inputs]
    given = {name: attr for name, attr in {**required, **attributes}.items() if attr is not None}
    results = len(operator.outputs)
    return ir.Node(operator.domain, operator.name, inputs, given.values(), num_outputs=results)


@pytest.mark.parametrize("name", WITH_ATTRIBUTES)
def test_an_attribute_of_another_type_is_refused(name: str) -> None:
    operator = WITH_ATTRIBUTES[name]
    for each in operator.attributes:
        is_text = each.type == ir.AttributeType.STRING
        wrong = ir.AttrInt64(each.name, 1) if is_text else ir.AttrString(each.name, "1")
        with pytest.raises(InvalidModel, match=f"attribute '{each.name}' is not of type") as caught:
            operator.attributes_of(node_of(operator, {each.name: wrong}))
        assert caught.value.code == "E330"


@pytest.mark.parametrize("name", WITH_ATTRIBUTES)
def test_attributes_that_are_left_out_have_their_defaults(name: str) -> None:
    operator = WITH_ATTRIBUTES[name]
    found = operator.attributes_of(node_of(operator, {}))
    for each in operator.attributes:
        if not each.required:
            assert found[each.name] == each.default
            continue
        with pytest.raises(InvalidModel, match=f"attribute '{each.name}' is missing"):
            operator.attributes_of(node_of(operator, {each.name: None}))
