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


def test_a_file_names_the_consumers_that_take_all_of_it(optimize) -> None:
    [whole] = [line for line in optimize(BERT).stderr.splitlines() if "supported by" in line]
    assert {"onnxruntime", "openvino"} < set(whole.replace(",", "").split())
    assert "quantize" not in whole
    facts = json.loads(optimize(BERT, "--for", "quantize", "--json").stdout)
    assert facts["taken_by"] == ["quantize"]
    assert not facts["outside"]


def test_what_a_consumer_does_not_take_is_listed_with_the_remedy(optimize) -> None:
    result = optimize(BERT, "--for", "coreml-ep")
    assert "coreml-ep does not support" in result.stderr
    assert "its sizes must be fixed; bind them, for instance: --dim" in result.stderr


def test_notes_name_operators_that_the_runtime_computes_wrong(optimize, write) -> None:
    graph = "g (int64[4] x, int64[4] z) => (int64[4] y) { y = Max(x, z) }"
    result = optimize(write(HEADER + graph), "--json")
    assert "computes Max" in json.loads(result.stdout)["notes"][0]
    small = graph.replace("Max(x, z)", "Cast<to=7>(s)").replace(" { ", " { s = Shape(x) ")
    assert not json.loads(optimize(write(HEADER + small), "--json").stdout)["notes"]
