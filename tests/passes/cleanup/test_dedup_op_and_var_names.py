"""Nodes and values get unique names."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from rewrites import check_same_numbers, check_unchanged, run_pass

from smelt.errors import InvalidModel
from smelt.ir import scope, text
from smelt.passes.base import PassContext
from smelt.passes.cleanup.dedup_op_and_var_names import dedup_op_and_var_names

BRANCHES = """g (bool c, float[2] x) => (float[2] y) {
    [one] a = Neg(x)
    [two] y = If (c) <
        then_branch = t () => (float[2] u) { [one] p = Abs(a)  u = Neg(p) },
        else_branch = e () => (float[2] v) { [two] q = Exp(a)  [three] v = Neg(q) }
    >
}"""


def node_names(model: ir.Model) -> list[str | None]:
    return [node.name for node in scope.nodes(model)]


def value_names(model: ir.Model) -> list[str | None]:
    return [value.name for node in scope.nodes(model) for value in node.outputs]


def test_nodes_of_a_name_and_of_none() -> None:
    model = text.parse(BRANCHES)
    stats = run_pass(dedup_op_and_var_names, model)
    assert node_names(model) == ["one", "two", "one_0", "Neg_0", "two_0", "three"]
    assert stats.fired == {"node named": 3}
    check_same_numbers(text.parse(BRANCHES), model, dedup_op_and_var_names.exactness)


def test_a_number_that_is_taken() -> None:
    model = text.parse(
        "g (float[2] x) => (float[2] y) { [n] a = Neg(x) [n] b = Neg(a) [n_0] y = Neg(b) }"
    )
    run_pass(dedup_op_and_var_names, model)
    assert node_names(model) == ["n", "n_1", "n_0"]


def test_values_of_inner_graphs() -> None:
    model = text.parse(BRANCHES)
    for graph in list(scope.graphs(model))[1:]:
        graph[0].outputs[0].name = "a"
        graph[1].outputs[0].name = "x"
    run_pass(dedup_op_and_var_names, model)
    assert value_names(model) == ["a", "y", "a_0", "x_0", "a_1", "x_1"]
    check_same_numbers(text.parse(BRANCHES), model, dedup_op_and_var_names.exactness)


def test_the_interface_keeps_its_names() -> None:
    model = text.parse(
        "g (float[2] x) => (float[2] y) <float[2] w = {1,2}> { a = Add(x, w) b = Neg(a) y = Neg(b) }"
    )
    model.graph[0].outputs[0].name = "y"
    model.graph[1].outputs[0].name = "x"
    run_pass(dedup_op_and_var_names, model)
    assert value_names(model) == ["y_0", "x_0", "y"]
    assert [value.name for value in model.graph.inputs] == ["x"]


def test_an_interface_that_clashes_is_refused() -> None:
    model = text.parse("g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }")
    model.graph.outputs[0].name = "z"
    with pytest.raises(InvalidModel) as caught:
        run_pass(dedup_op_and_var_names, model)
    assert caught.value.code == "E304"


def test_outputs_left_out_stay_out() -> None:
    model = text.parse(
        "g (float[3,1,1] x, float[1,4,1] w, float[1,4,1] r) => (float[1,1,1] i, float[1,1,1] j) "
        "{ , i = LSTM<hidden_size=1>(x, w, r)  , j = LSTM<hidden_size=1>(x, w, r) }"
    )
    run_pass(dedup_op_and_var_names, model)
    assert value_names(model) == ["", "i", "", "j"]


def test_functions_have_names_of_their_own_for_values_but_not_for_nodes() -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "f" : 1]>'
        "g (float[2] x) => (float[2] y) { [n] a = f.F(x) [m] y = Neg(a) }"
        '<domain: "f", opset_import: ["" : 23]> F (x) => (y) { [n] a = Neg(x) [k] y = Neg(a) }'
    )
    run_pass(dedup_op_and_var_names, model)
    assert node_names(model) == ["n", "m", "n_0", "k"]
    assert value_names(model) == ["a", "y", "a", "y"]


def test_values_made_later_do_not_take_the_new_names() -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { [n] val = Neg(x) [m] y = Neg(val) }")
    cx = PassContext.of(model)
    rewriter = cx.rewriter()
    first = rewriter.builder(model.graph[1], [], "test").op("Abs", model.graph.inputs[0])
    first.name = "val"
    dedup_op_and_var_names.run(cx)
    second = rewriter.builder(model.graph[1], [], "test").op("Exp", first)
    assert len({"val", first.name, second.name}) == 3


def test_good_names_stay() -> None:
    check_unchanged(
        dedup_op_and_var_names,
        "g (float[2] x) => (float[2] y) { [n] a = Neg(x) [m] y = Neg(a) }",
    )
