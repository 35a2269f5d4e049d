"""Operators that changed between opsets compute the same after they are raised."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest

import smelt
from smelt.ir import text
from smelt.ir.opset import versions
from smelt.ir.opsets.opset_adapters import ADAPTERS, UNCHANGED_FOR_INFERENCE

CASES = {
    "a mask of Dropout": (10, "g (float[4] x) => (float[4] y, bool[4] m) { y, m = Dropout(x) }"),
    "a mask alone": (11, "g (float[4] x) => (bool[4] m) { y, m = Dropout<ratio=0.3>(x) }"),
    "an operand for each place": (
        7,
        "g (float[2,3,4] x, float[3,4] s, float[3,4] b, float[3,4] m, float[3,4] v) => "
        "(float[2,3,4] y) { y = BatchNormalization<spatial=0,epsilon=0.01>(x, s, b, m, v) }",
    ),
    "an operand for each channel": (
        8,
        "g (float[2,3,4] x, float[3] s) => (float[2,3,4] y) "
        "{ y = BatchNormalization(x, s, s, s, s) }",
    ),
    "nearest places of axes that grow and shrink": (
        10,
        "g (float[1,1,4,5] x) => (float[1,1,2,8] y) <float[4] s = {1,1,0.6,1.7}> "
        "{ y = Resize(x, s) }",
    ),
    "nearest places of axes that shrink": (
        10,
        "g (float[1,1,7,5] x) => (float[1,1,4,3] y) <float[4] s = {1,1,0.6,0.7}> "
        "{ y = Resize(x, s) }",
    ),
    "nearest places by scales of the run": (
        10,
        "g (float[1,1,4,5] x, float[4] s) => (float[N,C,H,W] y) { y = Resize(x, s) }",
    ),
    "a transform": (17, "g (float[2,6,5,1] x) => (float[2,6,5,2] y) { y = DFT(x) }"),
    "a transform along an axis": (
        19,
        "g (float[2,6,5,1] x) => (float[2,6,3,2] y) { y = DFT<axis=2, onesided=1>(x) }",
    ),
    "an inverse of a length": (
        17,
        "g (float[2,6,5,2] x) => (float[2,4,5,2] y) <int64 n = {4}> { y = DFT<inverse=1>(x, n) }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same(name: str) -> None:
    version, graph = CASES[name]
    source = ir.to_proto(text.parse(graph, version))
    rng = np.random.default_rng(0)
    given = {
        value.name: rng.uniform(0.5, 2, [d.dim_value for d in value.type.tensor_type.shape.dim])
        for value in source.graph.input
    }
    if "scales of the run" in name:
        given["s"] = np.array([1, 1, 0.6, 1.7])
    expected = run(source, given)
    assert all(y.size for y in expected)
    for opset in (13, 20, 23):
        if opset > version:
            raised = smelt.optimize(source, opset=opset, pipeline="")
            for x, y in zip(expected, run(raised, given), strict=True):
                np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-5)


def run(model, given) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {name: x.astype(np.float32) for name, x in given.items()})


def test_a_batch_norm_that_trains_for_each_place_is_refused() -> None:
    graph = (
        "g (float[2,3] x, float[3] s) => (float[2,3] y, float[3] m, float[3] v) "
        "{ y, m, v = BatchNormalization<spatial=0>(x, s, s, s, s) }"
    )
    with pytest.raises(smelt.SmeltError, match="BatchNormalization"):
        smelt.optimize(ir.to_proto(text.parse(graph, 8)), opset=13)


def test_each_adapter_belongs_to_a_version_of_its_operator() -> None:
    assert [
        key for key in {*ADAPTERS, *UNCHANGED_FOR_INFERENCE} if key[1] not in versions(key[0])
    ] == []
