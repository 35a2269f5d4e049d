"""``smelt optimize`` says what readers of its result stumble over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BERT = Path(__file__).parents[1] / "models" / "torchscript_bert.onnx"
HEADER = '<ir_version: 8, opset_import: ["" : 18]> '


@pytest.fixture
def optimize(smelt, tmp_path):
    def call(model, *options):
        result = smelt("optimize", model, "-o", tmp_path / "out.onnx", *options)
        assert result.exit_code == 0, result.stderr
        return result

    return call


def test_an_attention_of_onnx_is_told_to_those_who_quantize(optimize) -> None:
    assert "quantize_dynamic, add --opset 20" in optimize(BERT).stderr
    assert "quantize_dynamic" not in optimize(BERT, "--opset", "20").stderr
    assert "quantize_dynamic" not in optimize(BERT, "--keep-opset").stderr


def test_notes_name_operators_that_the_runtime_computes_wrong(optimize, write) -> None:
    graph = "g (int64[4] x, int64[4] z) => (int64[4] y) { y = Max(x, z) }"
    result = optimize(write(HEADER + graph), "--json")
    assert "computes Max" in json.loads(result.stdout)["notes"][0]
    small = graph.replace("Max(x, z)", "Cast<to=7>(s)").replace(" { ", " { s = Shape(x) ")
    assert not json.loads(optimize(write(HEADER + small), "--json").stdout)["notes"]
