"""Scores of a classifier are returned as a tensor instead of dictionaries."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.runtime.runner import open_runner

PIPELINE = "zip-map-to-tensor,default"
CLASSIFIER = """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
g (float[N,3] x) => (int64[N] label, seq(map(KEY,float)) probabilities)
{
    label, scores = ai.onnx.ml.LinearClassifier<classlabels_ints=[0,1], multi_class=0,
        coefficients=[1.0,2.0,3.0,-1.0,-2.0,-3.0], intercepts=[0.0,0.0], post_transform="LOGISTIC">(x)
    probabilities = ai.onnx.ml.ZipMap<LABELS>(scores)
}"""
KEYS = {"int64": "classlabels_int64s=[7,5]", "string": 'classlabels_strings=["yes","no"]'}
COLUMNS = {"int64": (7, 5), "string": ("yes", "no")}
X = np.array([[0.5, -1, 0.25], [1, 0, -2]], np.float32)


def classifier(key: str = "int64") -> onnx.ModelProto:
    text = CLASSIFIER.replace("KEY", key).replace("LABELS", KEYS[key])
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize("key", KEYS)
def test_columns_are_in_the_order_of_the_keys(key: str) -> None:
    source = classifier(key)
    made = smelt.optimize(source, pipeline=PIPELINE, verify="each")
    assert [node.op_type for node in made.graph.node] == ["LinearClassifier"]
    label, scores = open_runner(made)(X)
    expected = open_runner(source)(X)
    assert scores.dtype == np.float32
    assert scores.tolist() == [[row[each] for each in COLUMNS[key]] for row in expected[1]]
    assert label.tolist() == expected[0].tolist()
    output = made.graph.output[1]
    columns = ", ".join(map(str, COLUMNS[key]))
    assert (output.name, output.doc_string) == ("probabilities", f"columns: {columns}")


def test_a_wrong_order_would_be_found() -> None:
    source = classifier()
    made = smelt.optimize(source, pipeline=PIPELINE)
    assert smelt.optimize(made, verify="each").graph.output[1].type.HasField("tensor_type")
    turned = onnx.parser.parse_model(
        onnx.printer.to_text(made).replace("-1, -2, -3", "-1, -2.5, -3")
    )
    assert not smelt.verify(made, turned, dims={"N": 3}).ok


@pytest.mark.parametrize("target", ["host", "c"])
def test_programs_return_it(target: str) -> None:
    with pytest.raises(SmeltError, match="--pipeline zip-map-to-tensor,default"):
        smelt.compile(classifier(), target=target, dims={"N": 2})(X)
    artifact = smelt.compile(classifier(), target=target, pipeline=PIPELINE, dims={"N": 2})
    expected = [[row[7], row[5]] for row in open_runner(classifier())(X)[1]]
    np.testing.assert_allclose(artifact(X)[1], expected, rtol=1e-4)


KEPT = {
    "dictionaries that are read": CLASSIFIER.replace("probabilities = ", "made = ").replace(
        "(scores)\n", "(scores)\n    probabilities = Identity(made)\n"
    ),
    "one row that is no matrix": """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]>
        g (float[2] x) => (seq(map(KEY,float)) y) { y = ai.onnx.ml.ZipMap<LABELS>(x) }""",
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_kept(text: str) -> None:
    text = text.replace("KEY", "int64").replace("LABELS", KEYS["int64"])
    kept = smelt.optimize(onnx.parser.parse_model(text), pipeline="zip-map-to-tensor")
    assert "ZipMap" in [node.op_type for node in kept.graph.node]


def test_dictionaries_that_are_returned_twice() -> None:
    text = CLASSIFIER.replace("KEY", "int64").replace("LABELS", KEYS["int64"])
    source = onnx.parser.parse_model(text)
    source.graph.output.append(source.graph.output[1])
    made = smelt.optimize(source, pipeline="zip-map-to-tensor", verify="each")
    assert [o.type.WhichOneof("value") for o in made.graph.output[1:]] == ["tensor_type"] * 2
