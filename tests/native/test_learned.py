"""Operators of ai.onnx.ml and of training, and small ones of ONNX, in one model on C and the host."""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import smelt
from smelt.errors import SmeltError

ML, TRAINING = "ai.onnx.ml", "ai.onnx.preview.training"
F, NAN = np.float32, np.nan


def tensor(values, dtype=F) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype))


def trees(**changed) -> dict[str, object]:
    """Two trees over four features: nodes 0-2 and node 3; one asks for members of a set."""
    told: dict[str, object] = {
        "tree_roots": [0, 3],
        "nodes_featureids": [0, 1, 3, 2],
        "nodes_splits": tensor([0.0, 0.5, 0.0, -0.5]),
        "nodes_modes": tensor([0, 3, 6, 2], np.uint8),
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 1],
        "nodes_falseleafs": [0, 1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 0, 0, 1],
        "membership_values": tensor([1.0, -2.0, NAN]),
        "leaf_targetids": [0, 1, 0, 1, 1],
        "leaf_weights": tensor([1.0, 2.0, 4.0, 8.0, 16.0]),
        "n_targets": 2,
    }
    return {**told, **changed}


NODES = [
    helper.make_node("TreeEnsemble", ["x"], ["sum"], domain=ML, **trees()),
    helper.make_node("TreeEnsemble", ["x"], ["least"], domain=ML, aggregate_function=2, **trees()),
    helper.make_node("Binarizer", ["x"], ["binary"], domain=ML, threshold=0.25),
    helper.make_node("Scaler", ["x"], ["scaled"], domain=ML, offset=[1.0] * 4, scale=[2.0] * 4),
    helper.make_node("ArrayFeatureExtractor", ["x", "at"], ["chosen"], domain=ML),
    helper.make_node(
        "LinearRegressor", ["x"], ["line"], domain=ML, targets=2, coefficients=[1.0] * 8,
        intercepts=[0.5, -1.0],
    ),
    helper.make_node(
        "Adam", ["r", "t", "m", "m", "m", "h"], ["ax", "av", "ah"], domain=TRAINING,
        norm_coefficient=0.1,
    ),
    helper.make_node(
        "Momentum", ["r", "t", "m", "m", "m"], ["mx", "mv"], domain=TRAINING, alpha=0.9, beta=0.5,
        mode="nesterov", norm_coefficient=0.1,
    ),
    helper.make_node("Adagrad", ["r", "t", "m", "m", "h"], ["gx", "gh"], domain=TRAINING),
    helper.make_node("Det", ["m"], ["det"]),
    helper.make_node("Pow", ["i", "half"], ["power"]),
    helper.make_node("MaxPool", ["p"], ["top", "places"], kernel_shape=[2, 2], storage_order=1),
    helper.make_node("Dropout", ["x"], ["same", "mask"]),
]  # fmt: skip
SIZES = {
    "sum": [6, 2], "least": [6, 2], "binary": [6, 4], "scaled": [6, 4], "chosen": [6, 2],
    "line": [6, 2], "ax": [2, 3, 3], "av": [2, 3, 3], "ah": [2, 3, 3], "mx": [2, 3, 3],
    "mv": [2, 3, 3], "gx": [2, 3, 3], "gh": [2, 3, 3], "det": [2], "power": [3], "top": [1, 2, 2, 3],
    "places": [1, 2, 2, 3], "same": [6, 4], "mask": [6, 4],
}  # fmt: skip
TYPES = {"power": TensorProto.INT32, "places": TensorProto.INT64, "mask": TensorProto.BOOL}
rng = np.random.default_rng(0)
X = rng.normal(size=(6, 4)).astype(F)
X[0, 0] = X[1, 2] = NAN
X[2, 3], X[3, 3], X[2:4, 0] = 1.0, -2.0, 3.0
GIVEN = {
    "x": X,
    "m": rng.normal(size=(2, 3, 3)).astype(F),
    "h": rng.random((2, 3, 3)).astype(F),
    "r": np.array(0.1, F),
    "t": np.array(3),
    "i": np.array([4, 9, 30], np.int32),
    "p": rng.normal(size=(1, 2, 3, 4)).astype(F),
}


@cache
def model() -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in GIVEN.items()
    ]
    outputs = [
        helper.make_tensor_value_info(name, TYPES.get(name, TensorProto.FLOAT), sizes)
        for name, sizes in SIZES.items()
    ]
    constants = {"at": np.array([[3, 0]]), "half": np.array(0.5, F)}
    given = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(NODES, "g", inputs, outputs, given)
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 23), (ML, 5), (TRAINING, 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


@pytest.mark.parametrize("target", ["c", "host"])
def test_results_are_those_of_the_reference(target: str) -> None:
    expected = ReferenceEvaluator(model()).run(None, GIVEN)
    got = smelt.compile(ir.from_proto(model()), target=target)(*GIVEN.values())
    by_columns = GIVEN["p"].transpose(0, 1, 3, 2).reshape(-1)
    for name, ours, wanted in zip(SIZES, got, expected, strict=True):
        if name == "places":  # the reference counts them otherwise than ONNX Runtime
            np.testing.assert_array_equal(by_columns[ours], expected[list(SIZES).index("top")])
            continue
        np.testing.assert_allclose(ours, np.asarray(wanted), rtol=2e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"nodes_falsenodeids": [2, 0, 0, 1], "nodes_falseleafs": [0, 0, 0, 1]}, "has a cycle"),
        ({"post_transform": 4}, "post_transform"),
    ],
)
def test_malformed_ensembles_are_refused(changed: dict[str, object], why: str) -> None:
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], domain=ML, **trees(**changed))
    types = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)
        for name, sizes in (("x", [6, 4]), ("y", [6, 2]))
    ]
    graph = helper.make_graph([node], "g", types[:1], types[1:])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid(ML, 5)], ir_version=11)
    with pytest.raises(SmeltError, match=why):
        smelt.compile(ir.from_proto(source), target="host")
