"""Dims without a name go by one name everywhere: the input's and the axis."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import smelt
from smelt.ir.symbolic_dims.dims import unnamed_dims
from smelt.runtime.interface import interface_of


@pytest.fixture
def model() -> onnx.ModelProto:
    ports = [("x", [None, "N", 4]), ("a:0", [None, 1, 4])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in ports]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, None, 4])]
    graph = helper.make_graph([helper.make_node("Add", ["x", "a:0"], ["y"])], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_the_interface_shows_them(model):
    ports = interface_of(smelt.load(model)).inputs
    assert [str(port) for port in ports] == ["float[x_0,N,4]", "float[a_0_0,1,4]"]
    assert str(interface_of(smelt.load(model)).outputs[0]) == "float[?,?,4]"


def test_a_target_asks_for_them_and_takes_them(model):
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.compile(model, target="c")
    assert caught.value.code == "E401"
    assert caught.value.at[0] == "input 'x' float[x_0,N,4]"
    advice = "bind them, for instance: --dim x_0=1 --dim N=1 --dim a_0_0=1"
    assert caught.value.fix == f"{advice}; or bound them, as in --dim NAME=1..16"
    artifact = smelt.compile(model, target="c", dims={"x_0": 2, "N": 3, "a_0_0": 1})
    assert [list(value.shape) for value in artifact.model.graph.inputs] == [[2, 3, 4], [1, 1, 4]]


def test_verification_takes_them_and_is_1_without(model):
    report = smelt.verify(model, model, dims={"x_0": 2, "a_0_0": (1, 2), "N": 3})
    assert report.ok
    assert [trial.sizes["x_0"] for trial in smelt.verify(model, model).trials] == [1] * 6


def test_names_that_are_taken_stay_apart(model):
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "x_0"
    assert sorted(unnamed_dims(smelt.load(model).graph.inputs).values()) == ["a_0_0", "x_0_"]


def test_the_interface_is_written_as_it_was(model):
    assert smelt.optimize(model).graph.input == model.graph.input
