"""Facts about operators, whatever the opset spells."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import opset, scope, text
from smelt.ir.constants import Constants


def node(body: str, version: int = 23) -> ir.Node:
    """The last node of the main graph."""
    [*_, last] = text.parse(
        f"g (float[2,3,4] x, bool b) => (float[n] y) {{ {body} }}", version
    ).graph
    return last


def test_the_table_agrees_with_itself() -> None:
    assert not opset.RANDOM & (opset.MOVEMENT | opset.REDUCTIONS)


EVERY = opset.MOVEMENT | opset.RANDOM | opset.REDUCTIONS | scope.GRAPH_CARRIERS


@pytest.mark.parametrize("op_type", sorted(EVERY))
def test_every_operator_in_the_table_exists(op_type: str) -> None:
    assert opset.schema(op_type, 24) is not None


@pytest.mark.parametrize(
    ("body", "random"),
    [
        ("y = RandomNormalLike(x)", True),
        ("y = Bernoulli(x)", True),
        ("y = Dropout(x)", False),
        ("r = Constant<value_float=0.5>() y = Dropout(x, r, b)", True),
        ("y = Relu(x)", False),
    ],
)
def test_random(body: str, random: bool) -> None:
    found = node(body)
    assert opset.is_random(found) == random
    assert opset.is_deterministic(found) != random


def test_a_branch_that_draws_is_not_deterministic() -> None:
    drawn = node(
        "y = If(b) <then_branch = t () => (float[2,3,4] u) { u = RandomNormalLike(x) }, "
        "else_branch = e () => (float[2,3,4] v) { v = Neg(x) }>"
    )
    assert not opset.is_random(drawn)
    assert not opset.is_deterministic(drawn)


def test_unknown_domains_are_not_trusted() -> None:
    assert not opset.is_deterministic(node("y = com.example.Draw(x)"))


def test_versions_and_schemas() -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = com.example.F(x) }", 18)
    assert opset.opset_of(model) == 18
    assert opset.opset_of(model, "com.example") == 1
    assert opset.opset_of(model, "nobody") == 0
    assert opset.schema("Gelu", 19) is None
    assert opset.schema("Gelu", 20) is not None


def test_attributes_given_or_by_default() -> None:
    assert opset.attribute(node("y = Softmax(x)"), "axis", 13) == -1
    assert opset.attribute(node("y = Softmax(x)"), "axis", 11) == 1
    assert opset.attribute(node("y = Softmax<axis=0>(x)"), "axis", 13) == 0
    assert opset.attribute(node("y = Softmax(x)"), "nonsense", 13) is None
    assert opset.default_attribute("NoSuchOperator", "axis", 13) is None


AXES = {
    "an attribute": ("y = ReduceMax<axes=[-1,0]>(x)", (-1, 0), (0, 2)),
    "an input": ("i = Constant<value_ints=[1]>() y = ReduceMax(x, i)", (1,), (1,)),
    "absent": ("y = ReduceMax(x)", (), (0, 1, 2)),
    "absent, and that means none": ("y = ReduceMax<noop_with_empty_axes=1>(x)", (), ()),
    "one twice": ("i = Constant<value_ints=[2,-1]>() y = ReduceMax(x, i)", (2, -1), (2,)),
    "out of range": ("i = Constant<value_ints=[3]>() y = ReduceMax(x, i)", (3,), None),
    "computed": ("y = ReduceMax(x, k)", None, None),
}


@pytest.mark.parametrize(("body", "given", "reduced"), AXES.values(), ids=AXES.keys())
def test_axes(body: str, given: tuple[int, ...] | None, reduced: tuple[int, ...] | None) -> None:
    [*_, found] = text.parse(
        f"g (float[2,3,4] x, int64[m] k) => (float[n] y) {{ {body} }}", 18
    ).graph
    assert opset.axes_of(found, Constants()) == given
    assert opset.reduction_axes(found, Constants()) == reduced


def test_axes_of_an_operand_of_unknown_rank() -> None:
    model = text.parse(
        "g (float[2] x, int64[m] k) => (float y) { r = Reshape(x, k) y = ReduceMax(r) }"
    )
    assert opset.reduction_axes(model.graph[1], Constants()) is None


def test_kept_dims() -> None:
    assert opset.keeps_dims(node("y = ReduceMax(x)"))
    assert not opset.keeps_dims(node("y = ReduceMax<keepdims=0>(x)"))
