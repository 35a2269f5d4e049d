"""What exporters leave behind (``bench/export_models.py`` wrote the files), after the default pipeline."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import smelt
from smelt.compiler import optimize_model

MODELS = Path(__file__).parent / "models"
NORM, GELU, SOFTMAX, ATTENTION = "LayerNormalization", "Gelu", "Softmax", "Attention"
FUSED = {NORM: 5, GELU: 2, ATTENTION: 2, "Split": 2, SOFTMAX: 0, "Transpose": 0, "Where": 0}

EXPECTED: dict[str, tuple[int, dict[str, int]]] = {
    "torchscript_bert": (48, FUSED | {"Shape": 2, "Concat": 1}),
    "torchscript_gpt": (39, FUSED),
    "torchscript_cnn": (16, {"Conv": 3, "Relu": 1, "InstanceNormalization": 1, "Transpose": 0}),
    "torchscript_llama": (32, {"RMSNormalization": 2, ATTENTION: 1, SOFTMAX: 0}),
    "dynamo_bert": (48, FUSED | {"Shape": 1, "Concat": 1, "Cast": 0}),
    "dynamo_gpt": (39, FUSED | {"Cast": 0}),
    "dynamo_cnn": (16, {"Conv": 3, "Relu": 1, "InstanceNormalization": 1, "Transpose": 0}),
    "dynamo_llama": (32, {"RMSNormalization": 2, ATTENTION: 1, SOFTMAX: 0}),
    "tf2onnx_cnn": (11, {"Conv": 3, GELU: 1, "LeakyRelu": 1, "Add": 0, "Transpose": 1}),
    "tf2onnx_block": (11, {NORM: 2, GELU: 1, ATTENTION: 1, "Transpose": 0}),
    "jax2onnx_block": (11, {NORM: 2, GELU: 1, "Attention": 1, "Transpose": 0}),
}
"""The most nodes that may be left, and how often an operator stands among them."""

NEVER = ["BatchNormalization", "CastLike", "Constant", "Dropout", "Erf", "Identity", "Pow", "Tanh"]


@pytest.mark.parametrize("name", EXPECTED)
def test_one_operator_for_each_thing(name: str) -> None:
    most, counts = EXPECTED[name]
    model = smelt.load(MODELS / f"{name}.onnx")
    optimize_model(model, verify="final")
    found = Counter(node.op_type for node in model.graph)
    assert found.total() <= most
    assert {op_type: found[op_type] for op_type in counts} == counts
    assert not [op_type for op_type in NEVER if found[op_type]]


def test_every_model_is_held_to_something() -> None:
    assert {path.stem for path in MODELS.glob("*.onnx")} == set(EXPECTED)


def test_the_opset_is_raised_where_a_pass_needs_it() -> None:
    path = MODELS / "torchscript_bert.onnx"
    assert smelt.load(path).opset_imports[""] == 17
    assert smelt.optimize(path).opset_imports[""] == 23
    kept = smelt.optimize(path, highest_opset=0)
    assert kept.opset_imports[""] == 17
    assert GELU not in {node.op_type for node in kept.graph}
    assert smelt.optimize(path, opset=18).opset_imports[""] == 18
