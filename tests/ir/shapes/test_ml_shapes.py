"""The number of scores of classifiers, as ONNX Runtime returns them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.onnxruntime import OnnxRuntime

ML = "ai.onnx.ml"


def svm(labels: int, *, voting: bool, probabilities: bool) -> dict[str, object]:
    """Return the attributes of an SVM that votes by the vectors of each class, or of a linear one."""
    pairs = labels * (labels - 1) // 2
    found: dict[str, object] = {"classlabels_ints": list(range(labels)), "kernel_type": "LINEAR"}
    found["kernel_params"] = [0.5, 0.25, 3.0]
    if voting:
        found |= {
            "vectors_per_class": [1] * labels,
            "support_vectors": [0.5] * 2 * labels,
            "coefficients": [0.25] * (labels - 1) * labels,
            "rho": [0.1] * pairs,
        }
    else:
        found |= {"coefficients": [0.25] * 2 * labels, "rho": [0.1]}
    if probabilities:
        found |= {"prob_a": [1.0] * pairs, "prob_b": [0.5] * pairs}
    return found


CASES = {
    f"{labels} classes{', votes' * voting}{', probabilities' * likely}": svm(
        labels, voting=voting, probabilities=likely
    )
    for labels in (2, 3, 4)
    for voting, likely in ((True, False), (True, True), (False, False))
}


@pytest.mark.parametrize("name", CASES)
def test_scores_of_support_vectors(name: str) -> None:
    node = helper.make_node("SVMClassifier", ["x"], ["y", "scores"], domain=ML, **CASES[name])
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2])
    results = [helper.make_empty_tensor_value_info(name) for name in ("y", "scores")]
    graph = helper.make_graph([node], "g", [given], results)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    model = ir.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    ShapeInference(model).infer_model()
    labels, scores = OnnxRuntime(model)(np.ones((3, 2), np.float32))
    assert [value.shape for value in model.graph.outputs] == [labels.shape, scores.shape]
