"""A model of IR version 3 stays one: its initializers are constants to runtimes, not defaults."""

from __future__ import annotations

import onnx
import pytest

import smelt
from smelt.compiler import optimize_model
from smelt.frontends.onnx import load, to_proto

OLD = """<ir_version: 3, opset_import: ["" : 13]>
g (float[2,2] x, float[2,2] w) => (float[2,2] y, float[2,2] z) <float[2,2] w = {1,2,3,4}> {
    h = MatMul(x, w)
    c = Constant<value = float {2}>()
    d = Constant<value = float {3}>()
    e = Mul(c, d)
    y = Add(h, e)
    z = Sub(x, e)
}"""


def model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def test_what_passes_add_are_nodes() -> None:
    optimized = smelt.optimize(model(OLD))
    assert optimized.ir_version == 3
    assert [t.name for t in optimized.graph.initializer] == ["w"]
    assert [n.op_type for n in optimized.graph.node].count("Constant") == 1
    onnx.checker.check_model(optimized)


def test_another_run_changes_no_byte() -> None:
    once = smelt.optimize(model(OLD))
    assert smelt.optimize(once).SerializeToString() == once.SerializeToString()


def test_names_tell_nothing_of_what_passes_did() -> None:
    text = OLD.replace("y = Add(h, e)", "k = Constant<value = float[2] {5,6}>() y = Mul(h, k)")
    text = text.replace("h = MatMul", "[node_Constant_1] h = MatMul")
    found = load(model(text))
    optimize_model(found)
    once = to_proto(found)
    assert [n.name for n in once.graph.node if n.op_type == "Constant"] == [
        "node_Constant_0",
        "node_Constant_2",
    ]
    assert to_proto(found, spent=True) == once
    assert smelt.optimize(once) == once


@pytest.mark.parametrize("version", [4, 8])
def test_later_versions_have_initializers(version: int) -> None:
    optimized = smelt.optimize(model(OLD.replace("ir_version: 3", f"ir_version: {version}")))
    assert optimized.ir_version == version
    assert len(optimized.graph.initializer) == 2


def test_a_model_without_defaults_gets_initializers() -> None:
    text = OLD.replace(" <float[2,2] w = {1,2,3,4}>", "")
    optimized = smelt.optimize(model(text))
    assert optimized.ir_version == 4
    assert len(optimized.graph.initializer) == 1


def test_large_constants_stay_initializers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("smelt.frontends.onnx.constant_nodes.LARGEST", 3)
    assert smelt.optimize(model(OLD)).ir_version == 4


def test_a_constant_that_is_returned_and_one_of_a_branch() -> None:
    text = """<ir_version: 3, opset_import: ["" : 13]>
    g (bool b, float[2] w) => (float[2] y, float[2] k) <float[2] w = {1,2}, float[2] k = {3,4}> {
        y = If(b) <then_branch = t () => (float[2] t) <float[2] v = {5,6}> { t = Add(w, v) },
                   else_branch = e () => (float[2] e) { e = Mul(w, k) }>
    }"""
    proto = to_proto(load(model(text)))
    assert proto.ir_version == 3
    onnx.checker.check_model(proto)
    assert [t.name for t in proto.graph.initializer] == ["w"]
