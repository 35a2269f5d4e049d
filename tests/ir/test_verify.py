"""Each invariant that a pass may break is found, by name; a sound model has none."""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir
import pytest

from smelt.errors import InternalError
from smelt.ir import text, verify

GRAPH = """g (bool c, float[2] x) => (float[2] y) <float[2] w = {1,2}> {
    [n] a = Add(x, w)
    [i] b = If(c) <then_branch = t () => (float[2] u) { [m] u = Neg(a) },
                   else_branch = e () => (float[2] v) { [k] v = Abs(a) }>
    [o] y = Neg(b)
}"""


def test_a_sound_model_has_no_problems() -> None:
    model = text.parse(GRAPH)
    assert list(verify.problems_of(model)) == []
    verify.verify(model)


def wrong_order(model: ir.Model) -> None:
    add, branch = model.graph[0], model.graph[1]
    model.graph.insert_after(branch, add)


def two_of_one_name(model: ir.Model) -> None:
    model.graph[0].outputs[0].name = "x"


def an_inner_value_that_hides_an_outer_one(model: ir.Model) -> None:
    then = model.graph[1].attributes["then_branch"].as_graph()
    then[0].outputs[0].name = "a"


def an_output_of_nothing(model: ir.Model) -> None:
    model.graph.outputs[0] = ir.Value(name="nowhere")


def a_removed_producer(model: ir.Model) -> None:
    model.graph.remove(model.graph[0])


def an_unknown_domain(model: ir.Model) -> None:
    model.graph[2].domain = "nobody"


def an_initializer_without_content(model: ir.Model) -> None:
    model.graph.initializers["w"].const_value = None


def a_value_of_another_model(model: ir.Model) -> None:
    model.graph[2].replace_input_with(0, text.parse(GRAPH).graph.inputs[1])


BROKEN: dict[Callable[[ir.Model], None], str] = {
    wrong_order: "node 'm' (Neg) reads 'a' before it is written",
    two_of_one_name: "two values are called 'x'",
    an_inner_value_that_hides_an_outer_one: "two values are called 'a'",
    an_output_of_nothing: "graph 'g' returns 'nowhere', which nothing there writes",
    a_removed_producer: "node 'm' (Neg) reads 'a' before it is written",
    an_unknown_domain: "node 'o' (Neg) is of the domain 'nobody', which is not imported",
    an_initializer_without_content: "initializer 'w' has no tensor",
    a_value_of_another_model: "node 'o' (Neg) reads 'x' before it is written",
}


@pytest.mark.parametrize(
    ("break_it", "problem"), BROKEN.items(), ids=lambda v: getattr(v, "__name__", "")
)
def test_finds(break_it: Callable[[ir.Model], None], problem: str) -> None:
    model = text.parse(GRAPH)
    break_it(model)
    assert problem in list(verify.problems_of(model))
    with pytest.raises(InternalError) as caught:
        verify.verify(model)
    assert caught.value.code == "E905"


def test_branches_may_use_one_name_each_and_functions_have_their_own() -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "f" : 1]>'
        "g (bool c, float[2] x) => (float[2] y) { a = f.F(x) y = If(c) <"
        "then_branch = t () => (float[2] u) { u = Neg(a) }, "
        "else_branch = e () => (float[2] u) { u = Abs(a) }> }"
        '<domain: "f", opset_import: ["" : 23]> F (x) => (y) { y = Neg(x) }'
    )
    verify.verify(model)


def test_problems_inside_functions_are_found() -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "f" : 1]>'
        "g (float[2] x) => (float[2] y) { y = f.F(x) }"
        '<domain: "f", opset_import: ["" : 23]> F (x) => (y) { y = other.G(x) }'
    )
    [problem] = verify.problems_of(model)
    assert "'other', which is not imported" in problem


MALFORMED = {
    "axes as an input, before they were one": (
        17,
        "g (float[2] x, int64[1] a) => (float[b] y) { y = ReduceMax(x, a) }",
        "it has 2 inputs where ReduceMax takes 1 to 1",
    ),
    "axes as an attribute, after they were one": (
        18,
        "g (float[2] x) => (float[b] y) { y = ReduceMax<axes=[0]>(x) }",
        "ReduceMax has no attribute 'axes'",
    ),
    "an operator of a later opset": (
        23,
        "g (float[2] x) => (float[2] y) { y = Swish(x) }",
        "opset 23 has no operator Swish",
    ),
    "a required attribute that is missing": (
        23,
        "g (float[2] x) => (float[2] y) { y = Concat(x, x) }",
        "attribute 'axis' is missing",
    ),
    "more outputs than there are": (
        13,
        "g (float[2] x) => (float[2] y) { y, z = Relu(x) }",
        "it has 2 outputs where Relu writes 1 to 1",
    ),
}


@pytest.mark.parametrize(("opset", "graph", "problem"), MALFORMED.values(), ids=MALFORMED.keys())
def test_nodes_have_the_form_of_their_operator_at_the_opset(
    opset: int, graph: str, problem: str
) -> None:
    [found] = verify.problems_of(text.parse(graph, opset))
    assert found.endswith(problem)


def test_a_function_of_the_model_has_the_form_that_it_gives_itself() -> None:
    graph = "g (float[2] x) => (float[2] y) { y = Relu<mine=1>(x, x) }"
    model = text.parse(graph)
    assert list(verify.problems_of(model))
    inner = ir.Graph([], [], nodes=[], opset_imports={"": 23})
    model.functions[("", "Relu", "")] = ir.Function("", "Relu", graph=inner, attributes=[])
    assert not list(verify.problems_of(model))
