"""Weights of few numbers or mostly zeros: fewer bytes, the same bits, and back from a package."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from targets.coreml.packages import computed, written

import smelt
from smelt.ir import text
from smelt.targets.coreml import coreml

F = np.float32
RANDOM = np.random.default_rng(5)
MODELS = {
    "linear": (
        "g (float[2,24] x, float[24,32] w) => (float[2,32] y) { y = MatMul(x, w) }",
        (24, 32),
    ),
    "conv": (
        "g (float[1,8,6,6] x, float[16,8,3,3] w) => (float[1,16,4,4] y) { y = Conv(x, w) }",
        (16, 8, 3, 3),
    ),
    "gather": ("g (int64[3] x, float[40,8] w) => (float[3,8] y) { y = Gather(w, x) }", (40, 8)),
}
PALETTE, SPARSE, CONST = "constexpr_lut_to_dense", "constexpr_sparse_to_dense", "const"


def weights(kind: str, sizes: tuple[int, ...]) -> np.ndarray:
    if kind == "random":
        return RANDOM.normal(size=sizes).astype(F)
    if kind == "sparse":
        return np.where(RANDOM.random(sizes) < 0.2, RANDOM.normal(size=sizes), 0).astype(F)
    numbers = RANDOM.normal(size=int(kind)).astype(F)
    numbers[:2] = -0.0, np.inf if kind == "17" else 1
    return numbers[RANDOM.integers(0, len(numbers), sizes)]


def with_weight(name: str, array: np.ndarray) -> ir.Model:
    model = text.parse(MODELS[name][0])
    value = next(each for each in model.graph.inputs if each.name == "w")
    model.graph.inputs.remove(value)
    value.const_value = ir.tensor(array, name="w")
    model.graph.register_initializer(value)
    return model


def compiled(model: ir.Model, ios: int, precision: str):
    return smelt.compile(model, target=coreml, ios=ios, precision=precision, weights="compact")


def constexprs(artifact) -> list[str]:
    body = artifact.plan.steps.program.functions["main"].body
    return [each.type for each in body.operations if each.type.startswith("constexpr")]


@pytest.mark.parametrize("ios", [16, 18])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [("2", PALETTE), ("9", PALETTE), ("17", PALETTE), ("sparse", SPARSE), ("random", None)],
)
def test_a_weight_is_unpacked_when_the_package_is_loaded(name, kind, expected, ios):
    if (name, kind) == ("conv", "17"):
        kind = "16"  # infinite weights make NaN of every sum
    model = with_weight(name, weights(kind, MODELS[name][1]))
    artifact = compiled(model, ios, "fp32")
    assert constexprs(artifact) == ([expected] if expected else [])
    dense = smelt.compile(model, target=coreml, ios=ios, precision="fp32")
    x = (
        RANDOM.integers(0, 9, 3)
        if name == "gather"
        else RANDOM.normal(size=model.graph.inputs[0].shape.numpy()).astype(F)
    )
    np.testing.assert_array_equal(computed(artifact, x)[0], computed(dense, x)[0])
    if expected:
        assert artifact.plan.memory.weight_bytes < dense.plan.memory.weight_bytes


@pytest.mark.parametrize("ios", [17, 18])
@pytest.mark.parametrize("kind", ["9", "sparse"])
def test_a_package_that_is_read_keeps_its_form(kind, ios, tmp_path):
    first = compiled(with_weight("linear", weights(kind, (24, 32))), ios, "fp16")
    first.save(tmp_path / "m.mlpackage")
    again = compiled(smelt.load(tmp_path / "m.mlpackage"), ios, "fp16")
    assert constexprs(again) == constexprs(first) != []
    assert again.plan.memory.weight_bytes == first.plan.memory.weight_bytes


def test_small_weights_and_biases_stay_dense():
    model = "g (float[2,3] x) => (float[2,3] y) <float[3,3] w = {1,1,1,1,1,1,1,1,1}> { y = MatMul(x, w) }"
    assert constexprs(written(model, weights="compact")) == []
