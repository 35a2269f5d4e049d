"""Models with map inputs or outputs, such as scikit-learn classifiers, are read and written."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import smelt
from smelt.runtime.interface import interface_of
from smelt.runtime.runner import open_runner

CLASSIFIER = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
g (float[N,3] x) => (int64[N] label, seq(map(int64,float)) probabilities)
{
    y = Identity(x)
    label, scores = ai.onnx.ml.LinearClassifier<classlabels_ints=[0,1], multi_class=0,
        coefficients=[1.0,2.0,3.0,-1.0,-2.0,-3.0], intercepts=[0.0,0.0], post_transform="LOGISTIC">(y)
    probabilities = ai.onnx.ml.ZipMap<classlabels_int64s=[0,1]>(scores)
}"""
VECTORIZER = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
g (map(string,float) features) => (float[1,2] y)
{ v = ai.onnx.ml.DictVectorizer<string_vocabulary=["a","b"]>(features) y = Relu(v) }"""


@pytest.fixture
def classifier() -> onnx.ModelProto:
    return onnx.parser.parse_model(CLASSIFIER)


def test_the_interface_shows_the_type(classifier):
    model = smelt.load(classifier)
    assert str(interface_of(model).outputs[1]) == "sequence(map(int64,float))"
    assert classifier.graph.output[1].type.HasField("sequence_type")  # the caller's stays whole


def test_the_type_is_written_again(classifier, tmp_path):
    optimized = smelt.optimize(classifier, verify="each")
    assert [node.op_type for node in optimized.graph.node] == ["LinearClassifier", "ZipMap"]
    assert optimized.graph.output[1] == classifier.graph.output[1]
    smelt.save(smelt.load(classifier), tmp_path / "m.onnx", external_data=True)
    assert onnx.load(tmp_path / "m.onnx").graph.output[1] == classifier.graph.output[1]


def test_maps_are_compared_by_key_and_number(classifier):
    assert smelt.verify(classifier, smelt.optimize(classifier), dims={"N": (1, 3)}).ok
    other = onnx.parser.parse_model(CLASSIFIER.replace("-3.0", "-2.5"))
    assert not smelt.verify(classifier, other, dims={"N": 3}).ok
    renamed = onnx.parser.parse_model(CLASSIFIER.replace("int64s=[0,1]", "int64s=[0,2]"))
    report = smelt.verify(classifier, renamed, dims={"N": 1})
    assert "the keys are [0, 2]" in str(report)


def test_a_map_may_be_an_input():
    runner = open_runner(smelt.load(onnx.parser.parse_model(VECTORIZER)))
    (result,) = runner({"b": np.float32(2.0)})
    np.testing.assert_array_equal(result, [[0.0, 2.0]])


def test_other_targets_refuse_maps_in_our_words(classifier):
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.compile(classifier, target="host")
    assert caught.value.code[:2] in ("E2", "E4")
