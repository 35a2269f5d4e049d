"""Patterns: what they bind, and what they refuse."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import scope, text
from smelt.ir.constants import Constants
from smelt.ir.index import NodeIndex
from smelt.ir.pattern import (
    Const,
    OneOf,
    Op,
    can_occur,
    const,
    depth,
    one_of,
    op,
    optional,
    roots,
    var,
)
from smelt.ir.rule import Match, Miss, Rule

X, Y = var("x"), var("y")
GELU = "g (float[4] x, float[4] z) => (float[4] y{more}) {{ {body} }}"


def match_last(pattern: Op | OneOf, graph: str, opset: int = 23) -> Match | Miss | None:
    """Match at the last node of a graph."""
    model = text.parse(graph, opset)
    rule = Rule("r", pattern, lambda m, b: None)
    return rule.match(list(model.graph)[-1], Constants(), opset)


def graph(body: str, outputs: str = "float[4] y") -> str:
    return f"g (float[4] x, float[4] z) => ({outputs}) {{ {body} }}"


def test_binds_values_and_nodes() -> None:
    found = match_last(
        op("Mul", X, op("Sigmoid", X, name="gate")), graph("s = Sigmoid(x) y = Mul(x, s)")
    )
    assert isinstance(found, Match)
    assert found["x"].name == "x"
    assert found.node("gate").op_type == "Sigmoid"
    assert [node.op_type for node in found.nodes] == ["Mul", "Sigmoid"]


def test_the_same_variable_twice_means_the_same_value() -> None:
    pattern = op("Mul", X, op("Sigmoid", X))
    found = match_last(pattern, graph("s = Sigmoid(z) y = Mul(x, s)"))
    assert found == Miss("'x' would be two different values")


NEAR = {
    "another number": (const(3.0), "two", "an operand is not the constant 3"),
    "no constant": (const(3.0), "z", "an operand is not the constant 3"),
    "other elements": (const(every=3.0), "two", "an operand is not 3 everywhere"),
    "a named operand": (const(name="scale"), "z", "'scale' is not a constant"),
    "an unnamed operand": (const(), "z", "an operand is not a constant"),
}


@pytest.mark.parametrize(("wanted", "operand", "reason"), NEAR.values(), ids=NEAR.keys())
def test_a_constant_that_does_not_fit_is_a_near_miss(
    wanted: Const, operand: str, reason: str
) -> None:
    pattern = op("Mul", op("Exp", X), wanted)
    text_ = "g (float[4] x, float[4] z) => (float[4] y) <float two = {2.0}> "
    assert match_last(pattern, f"{text_} {{ e = Exp(x) y = Mul(e, {operand}) }}") == Miss(reason)


HELD = {
    "every": ("float[4] c = {2, 2, 2, 2}", True),
    "one": ("float c = {2}", True),
    "none": ("float[0] c = {}", True),
    "all but the last": ("float[4] c = {2, 2, 2, 3}", False),
    "all but the first": ("float[4] c = {3, 2, 2, 2}", False),
    "not a number": ("float[4] c = {2, 2, 2, nan}", False),
    "doubles": ("double[2] c = {2, 2}", True),
    "integers": ("int64[2] c = {2, 2}", True),
}


@pytest.mark.parametrize(("held", "fits"), HELD.values(), ids=HELD.keys())
@pytest.mark.parametrize("operands", ["x, c", "c, x"])
def test_a_constant_of_one_number_everywhere(held: str, fits: bool, operands: str) -> None:
    kind = held.partition("[")[0].partition(" ")[0]
    found = match_last(
        op("Mul", X, const(every=2), commutative=True),
        f"g ({kind}[4] x) => ({kind}[4] y) <{held}> {{ y = Mul({operands}) }}",
    )
    assert isinstance(found, Match) == fits
    assert found is None or isinstance(found, Match)


def test_another_number_below_an_operator_is_a_near_miss() -> None:
    pattern = op("Mul", op("Exp", X), const(every=3))
    near = "g (float[2] x) => (float[2] y) <float[2] c = {3, 2}> { e = Exp(x) y = Mul(e, c) }"
    assert match_last(pattern, near) == Miss("an operand is not 3 everywhere")


@pytest.mark.parametrize("where", [True, False])
def test_a_node_can_be_asked(where: bool) -> None:
    """At the root and below, and no node of another operator or domain."""
    asked: list[str] = []

    def ask(node: ir.Node) -> bool:
        asked.append(node.op_type)
        return where

    for pattern in (op("Exp", X, where=ask), op("Neg", op("Exp", X, where=ask))):
        body = "y = Exp(x)" if pattern.op_types == ("Exp",) else "e = Exp(x) y = Neg(e)"
        assert isinstance(match_last(pattern, graph(body)), Match) == where
    either = one_of(op("Exp", X, where=ask), op("Log", X))
    assert isinstance(match_last(either, graph("y = Log(x)")), Match)
    assert set(asked) == {"Exp"}


def test_a_root_alone_is_no_near_miss() -> None:
    assert match_last(op("Mul", X, const(3.0)), graph("y = Mul(x, z)")) is None


@pytest.mark.parametrize("body", ["y = Mul(x, s)", "y = Mul(s, x)"])
def test_commutative_tries_both_orders(body: str) -> None:
    pattern = op("Mul", X, op("Sigmoid", X), commutative=True)
    assert isinstance(match_last(pattern, graph("s = Sigmoid(x) " + body)), Match)
    ordered = op("Mul", X, op("Sigmoid", X))
    assert isinstance(match_last(ordered, graph("s = Sigmoid(x) " + body)), Match) == (
        body == "y = Mul(x, s)"
    )


def test_backtracks_into_an_inner_choice() -> None:
    # Both orders of the inner Add fit on their own; only one agrees with the outer x.
    pattern = op("Mul", op("Add", X, Y, commutative=True), op("Neg", X))
    found = match_last(pattern, graph("a = Add(z, x) n = Neg(x) y = Mul(a, n)"))
    assert isinstance(found, Match)
    assert found["x"].name == "x"
    assert found["y"].name == "z"


def test_one_of_binds_the_alternative_that_fits() -> None:
    pattern = op("Relu", one_of(op("Neg", X), op("Abs", Y)))
    found = match_last(pattern, graph("a = Abs(z) y = Relu(a)"))
    assert isinstance(found, Match)
    assert found.get("x") is None
    assert found["y"].name == "z"


@pytest.mark.parametrize(("body", "bias"), [("y = Gemm(x, z)", None), ("y = Gemm(x, z, x)", "x")])
def test_optional_input(body: str, bias: str | None) -> None:
    found = match_last(op("Gemm", var("a"), var("b"), optional(var("c"))), graph(body))
    assert isinstance(found, Match)
    bound = found.get("c")
    assert (bound.name if bound is not None else None) == bias


def test_more_inputs_than_the_pattern_lists() -> None:
    body = graph("y = Concat<axis=0>(x, z)")
    assert match_last(op("Concat", X), body) is None
    assert isinstance(match_last(op("Concat", X, rest=True), body), Match)


def test_attributes_must_be_present_and_equal() -> None:
    assert isinstance(
        match_last(op("Concat", rest=True, axis=0), graph("y = Concat<axis=0>(x, z)")), Match
    )
    assert match_last(op("Concat", rest=True, axis=1), graph("y = Concat<axis=0>(x, z)")) is None
    assert match_last(op("LeakyRelu", X, alpha=0.01), graph("y = LeakyRelu(x)")) is None


def test_other_domains_do_not_match() -> None:
    assert match_last(op("Relu", X), graph("y = mine.Relu(x)")) is None
    assert isinstance(match_last(op("Relu", X, domain="mine"), graph("y = mine.Relu(x)")), Match)


CONSTANTS = {
    "exact": ("float", "1.4142135", True),
    "one ulp off": ("float", "1.4142137", True),
    "three ulp off": ("float", "1.4142139", False),
    "neutral-looking": ("float", "1e-12", False),
    "nan": ("float", "nan", False),
    "half precision": ("float16", "1.414", True),
    "half precision, off": ("float16", "1.4", False),
    "double": ("double", "1.4142135623730951", True),
    "double with float digits": ("double", "1.4142135", False),
}


@pytest.mark.parametrize(("dtype", "number", "fits"), CONSTANTS.values(), ids=CONSTANTS.keys())
def test_constants_are_compared_in_ulp_of_their_dtype(dtype: str, number: str, fits: bool) -> None:
    import numpy as np

    names = {"float": np.float32, "float16": np.float16, "double": np.float64}
    model = text.parse(f"g ({dtype}[4] x, {dtype} c) => ({dtype}[4] y) {{ y = Mul(x, c) }}")
    value = model.graph.inputs.pop()
    value.const_value = ir.Tensor(np.asarray(float(number), dtype=names[dtype]))
    model.graph.register_initializer(value)
    rule = Rule("r", op("Mul", X, const(2**0.5)), lambda m, b: None)
    assert isinstance(rule.match(model.graph[-1], Constants(), 23), Match) == fits


def test_overridable_initializer_is_no_constant() -> None:
    model = text.parse("g (float[4] x, float c = {1.0}) => (float[4] y) { y = Mul(x, c) }")
    assert model.graph.inputs[1].is_initializer()
    rule = Rule("r", op("Mul", X, const(1.0)), lambda m, b: None)
    assert rule.match(model.graph[-1], Constants(), 23) is None


PATTERN = op("Mul", X, op("Sigmoid", X), commutative=True)


def test_an_inner_result_is_no_operand_as_well() -> None:
    pattern = op("Sub", op("Exp", X), Y)
    found = match_last(pattern, graph("e = Exp(x) y = Sub(e, e)"))
    assert found == Miss("an inner result is an operand, too")
    shared = op("Sub", op("Exp", X, shared=True), Y)
    assert isinstance(match_last(shared, graph("e = Exp(x) y = Sub(e, e)")), Match)
    named = op("Mul", op("Exp", X, name="e"), var("e"))
    assert isinstance(match_last(named, graph("e = Exp(x) y = Mul(e, e)")), Match)


OPEN = {
    "read by another node": graph(
        "s = Sigmoid(x) q = Neg(s) y = Mul(x, s)", "float[4] y, float[4] q"
    ),
    "an output itself": graph("s = Sigmoid(x) y = Mul(x, s)", "float[4] y, float[4] s"),
    "captured by a subgraph": graph(
        "s = Sigmoid(x) b = Constant<value = bool {1}>() "
        "q = If(b) <then_branch = t () => (float[4] t) { t = Neg(s) }, "
        "else_branch = e () => (float[4] e) { e = Abs(s) }> y = Mul(x, s)",
        "float[4] y, float[4] q",
    ),
}


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN.keys())
def test_inner_results_read_elsewhere_make_a_near_miss(body: str) -> None:
    assert isinstance(match_last(PATTERN, body), Miss)
    shared = op("Mul", X, op("Sigmoid", X, shared=True), commutative=True)
    assert isinstance(match_last(shared, body), Match)


def test_reaches_into_no_graph_that_it_is_not_told_of() -> None:
    model = text.parse(
        "g (float[4] x, bool b) => (float[4] y) { s = Sigmoid(x) "
        "y = If(b) <then_branch = t () => (float[4] t) { t = Mul(x, s) }, "
        "else_branch = e () => (float[4] e) { e = Identity(x) }> }"
    )
    inner = model.graph[-1].attributes["then_branch"].as_graph()[0]
    assert Rule("r", PATTERN, lambda m, b: None).match(inner, Constants(), 23) is None


@pytest.mark.parametrize("index", [0, 1])
def test_a_node_that_asks_for_more_than_is_known_is_no_match(index: int) -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { a = Neg(x)  y = Relu(a) }")
    node = model.graph[index]
    node.attributes.add(ir.AttrInt64("novel", 1))
    rule = Rule("r", op("Relu", op("Neg", X)), lambda m, b: m["x"])
    found = rule.match(model.graph[1], Constants(), 23)
    assert found == Miss(f"a {node.op_type} has attribute 'novel', which is not known")


def test_roots_and_depth() -> None:
    pattern = one_of(op(["Add", "Sub"], X, op("Neg", Y)), op("Relu", X, domain="mine"))
    assert roots(pattern) == (("", "Add"), ("", "Sub"), ("mine", "Relu"))
    assert depth(pattern) == 2


@pytest.mark.parametrize(
    ("pattern", "operators", "possible"),
    [
        (op("Mul", X, op("Sigmoid", X)), {("", "Mul"), ("", "Sigmoid")}, True),
        (op("Mul", X, op("Sigmoid", X)), {("", "Mul")}, False),
        (op(["Mul", "Div"], X, Y), {("", "Div")}, True),
        (
            op("Mul", X, op("Sigmoid", X, domain="com.vendor")),
            {("", "Mul"), ("", "Sigmoid")},
            False,
        ),
        (one_of(op("Relu", X), op("Tanh", X)), {("", "Tanh")}, True),
        (op("Conv", X, Y, optional(op("Mul", X, Y))), {("", "Conv")}, True),
    ],
)
def test_a_pattern_cannot_occur_without_its_operators(
    pattern: Op | OneOf, operators: set[tuple[str, str]], possible: bool
) -> None:
    assert can_occur(pattern, operators) == possible


CAPTURED = (
    "g (float[N] x, bool c) => (float[N] y{more}) {{ s = Sigmoid(x) {rest} y = If(c) <then_branch "
    "= t () => (float[N] p) {{ {then} }}, else_branch = e () => (float[N] q) {{ {other} }}> }}"
)
TIMES = "p = Mul(x, s)"


def captured(then: str = TIMES, other: str = "q = Neg(x)", rest: str = "", more: str = "") -> str:
    return CAPTURED.format(then=then, other=other, rest=rest, more=more)


IN_BRANCHES = {
    "read by the branch alone": (captured(), True),
    "in a branch of a branch": (
        captured(
            "p = If(c) <then_branch = t2 () => (float[N] p2) { p2 = Mul(x, s) }, "
            "else_branch = e2 () => (float[N] q2) { q2 = Abs(x) }>"
        ),
        True,
    ),
    "read by the other branch": (captured(other="q = Neg(s)"), False),
    "read outside": (captured(rest="z = Neg(s)", more=", float[N] z"), False),
    "an output": (captured(more=", float[N] s"), False),
    "a Loop around the branch": (
        captured(
            "m = Constant<value_int=3>() p = Loop(m, , x) <body = b (int64 i, bool k, float[N] v) "
            "=> (bool o, float[N] w) { o = Identity(k) w = Mul(x, s) }>"
        ),
        False,
    ),
}


@pytest.mark.parametrize(("source", "fits"), IN_BRANCHES.values(), ids=IN_BRANCHES.keys())
def test_reaches_out_of_a_branch(source: str, fits: bool) -> None:
    """A value of the graph around is part of a match if the branch alone reads it."""
    model = text.parse(source)
    x = var("x")
    swish = Rule("r", op("Mul", x, op("Sigmoid", x), commutative=True), lambda m, b: None)
    around = NodeIndex(model).around
    times = [n for n in scope.nodes(model) if n.op_type == "Mul"]
    found = [swish.match(node, Constants(), 23, around) for node in times]
    assert [isinstance(each, Match) for each in found] == [fits]
