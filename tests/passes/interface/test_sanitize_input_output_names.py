"""Inputs and outputs get names that are identifiers; callers can look up the old names."""

from __future__ import annotations

import re

import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rewrites import check_same_numbers, check_unchanged, run_pass

import smelt
from smelt.ir import scope, text
from smelt.passes.base import EXACT
from smelt.passes.interface.sanitize_input_output_names import (
    META_KEY,
    sanitize_input_output_names,
    sanitized,
)

NAMES = {
    "input.1": "input_1",
    "/fc/out": "_fc_out",
    "x": "x",
    "_x1": "_x1",
    "1": "_1",
    "": "_",
    "größe": "gr__e",
    "float": "float_",
    "tensor": "tensor_",
    "register": "register_",
    "serving:0": "serving_0",
}


@pytest.mark.parametrize(("old", "new"), NAMES.items())
def test_names(old: str, new: str) -> None:
    assert sanitized(old) == new


@given(st.text(max_size=12))
def test_names_are_identifiers_and_stay(name: str) -> None:
    once = sanitized(name)
    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", once)
    assert sanitized(once) == once


def renamed(graph: str, **names: str) -> ir.Model:
    """Return the model with names that the text format does not allow."""
    model = text.parse(graph)
    for value in {**{v.name: v for v in model.graph.inputs}, **outputs(model)}.values():
        value.name = names.get(value.name or "", value.name)
    return model


def outputs(model: ir.Model) -> dict[str | None, ir.Value]:
    return {value.name: value for node in model.graph for value in node.outputs}


G = "g (float[2] a, float[2] b) => (float[2] y) { m = Mul(a, b) y = Neg(m) }"


def test_old_names_are_recorded() -> None:
    model = renamed(G, a="in.a", y="out/y")
    source = model.clone()
    stats = run_pass(sanitize_input_output_names, model)
    found = {
        v.name: v.metadata_props.get(META_KEY) for v in (*model.graph.inputs, *model.graph.outputs)
    }
    assert found == {"in_a": "in.a", "b": None, "out_y": "out/y"}
    check_same_numbers(source, model, EXACT, changes=stats.interface)
    again = ir.from_proto(ir.to_proto(model))
    assert again.graph.inputs[0].metadata_props[META_KEY] == "in.a"


COLLISIONS = {
    "two become one": ({"a": "x.1", "b": "x/1"}, ["x_1", "x_1_0", "y"]),
    "a good name wins": ({"a": "x.1", "b": "x_1"}, ["x_1_0", "x_1", "y"]),
    "a value inside has it": ({"a": "x.1", "m": "x_1"}, ["x_1_0", "b", "y"]),
    "an output has it": ({"a": "y?", "y": "y_"}, ["y__0", "b", "y_"]),
}


@pytest.mark.parametrize(("names", "expected"), COLLISIONS.values(), ids=COLLISIONS.keys())
def test_names_stay_different(names: dict[str, str], expected: list[str]) -> None:
    model = renamed(G, **names)
    run_pass(sanitize_input_output_names, model)
    assert [v.name for v in (*model.graph.inputs, *model.graph.outputs)] == expected


def test_branches_are_left_alone() -> None:
    graph = """g (bool c, float[2] a) => (float[2] y) { y = If (c) <
        then_branch = t () => (float[2] u) { u = Neg(a) },
        else_branch = e () => (float[2] v) { v = Abs(a) }> }"""
    model = renamed(graph, a="a.1")
    for inner in list(scope.graphs(model))[1:]:
        inner.outputs[0].name = f"{inner.name}/out"
    source = model.clone()
    stats = run_pass(sanitize_input_output_names, model)
    assert [v.name for v in model.graph.inputs] == ["c", "a_1"]
    assert [g.outputs[0].name for g in scope.graphs(model)] == ["y", "t/out", "e/out"]
    check_same_numbers(source, model, EXACT, changes=stats.interface)


def test_good_names_stay() -> None:
    check_unchanged(sanitize_input_output_names, G)


def test_in_a_pipeline() -> None:
    model = renamed(G, a="in.a", y="double")
    done = smelt.optimize(model, pipeline="default,sanitize-input-output-names")
    assert [v.name for v in (*done.graph.inputs, *done.graph.outputs)] == ["in_a", "b", "double_"]
