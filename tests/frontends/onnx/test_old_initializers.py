"""Up to IR version 3, initializers are also listed as inputs; they are constants all the same."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.runtime.interface import interface_of

OLD = """<ir_version: 3, opset_import: ["" : 13]>
g (float[2,2] x, float[2,2] w, int64[1] to) => (float[4] y, float[2,2] z)
<float[2,2] w = {1,2,3,4}, int64[1] to = {4}> {
    h = MatMul(x, w)
    r = Reshape(h, to)
    y = Relu(r)
    z = Sub(x, w)
}"""
X = np.float32([[1, 2], [3, -4]])
Y = np.float32([7, 10, 0, 0])
Z = np.float32([[0, 0], [0, -8]])


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def test_weights_are_no_inputs() -> None:
    optimized = smelt.optimize(model(OLD))
    assert [value.name for value in optimized.graph.input] == ["x"]
    assert optimized.ir_version == 8  # that of opset 15, to which an operator is raised
    onnx.checker.check_model(optimized)
    assert smelt.optimize(optimized).SerializeToString() == optimized.SerializeToString()
    assert smelt.verify(model(OLD), optimized)


@pytest.mark.parametrize("target", ["host", "c", "onnx", "ort"])
def test_every_target_accepts_the_remaining_inputs(target: str) -> None:
    artifact = smelt.compile(model(OLD), target=target)
    y, z = artifact(X)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(z, Z)


def test_models_in_memory_are_taken_alike() -> None:
    found = ir.from_proto(model(OLD))
    optimized = smelt.optimize(found)
    assert [port.name for port in interface_of(optimized).inputs] == ["x"]
    onnx.checker.check_model(ir.to_proto(optimized))
    assert [value.name for value in found.graph.inputs] == ["x", "w", "to"]
    np.testing.assert_array_equal(smelt.compile(found, target="host")(X)[0], Y)


def test_a_weight_that_is_returned() -> None:
    text = """<ir_version: 3, opset_import: ["" : 13]>
    g (bool b, float[2] w) => (float[2] y, float[2] k) <float[2] w = {1,2}, float[2] k = {3,4}> {
        y = If(b) <then_branch = t () => (float[2] t) <float[2] v = {5,6}> { t = Add(w, v) },
                   else_branch = e () => (float[2] e) { e = Mul(w, k) }>
    }"""
    artifact = smelt.compile(model(text), target="host")
    assert [array.tolist() for array in artifact(np.array(True))] == [[6, 8], [3, 4]]
    assert [array.tolist() for array in artifact(np.array(False))] == [[3, 8], [3, 4]]


@pytest.mark.parametrize("version", [4, 8])
def test_later_versions_have_defaults(version: int) -> None:
    optimized = smelt.optimize(model(OLD.replace("ir_version: 3", f"ir_version: {version}")))
    assert optimized.ir_version == 8
    assert [value.name for value in optimized.graph.input] == ["x", "w", "to"]
