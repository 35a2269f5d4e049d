"""Models of scikit-learn and similar packages, on c and host, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

import smelt
from smelt.errors import SmeltError
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.onnxruntime import OnnxRuntime

ML = "ai.onnx.ml"
F = np.float32
RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 4)).astype(F)
X[0, 0], X[1, 2] = np.nan, 0.0


def trees(kind: str, ids: Sequence[int], weights: Sequence[float], **more: object) -> dict:
    """Return the attributes of two trees: tree 0 has nodes 0 and 2 and leaves 1, 3, 4; tree 1 has a
    node and two leaves.
    """
    leaves = [(0, 1), (0, 3), (0, 4), (1, 1), (1, 2)]
    told = [(*leaf, target) for leaf in leaves for target in ids]
    return {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 0, 2, 0, 0, 3, 0, 0],
        "nodes_values": [0.1, 0, -0.2, 0, 0, 0.3, 0, 0],
        "nodes_modes": [
            "BRANCH_LEQ",
            "LEAF",
            "BRANCH_LT",
            "LEAF",
            "LEAF",
            "BRANCH_GT",
            *["LEAF"] * 2,
        ],
        "nodes_truenodeids": [1, 0, 3, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 0, 4, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 0, 0, 0],
        f"{kind}_treeids": [tree for tree, _, _ in told],
        f"{kind}_nodeids": [node for _, node, _ in told],
        f"{kind}_ids": [target for _, _, target in told],
        f"{kind}_weights": [float(w) for w in np.resize(np.asarray(weights), len(told))],
        **more,
    }


MIXED, POSITIVE = (0.5, -1.5, 2.0, -0.25, 1.0), (0.1, 0.4, 0.3, 0.05, 0.25)
TWO = {"classlabels_int64s": [5, 9]}
THREE = {"classlabels_int64s": [3, 1, 2]}
VECTORS = [float(v) for v in RNG.normal(size=24)]
SVM = {
    "support_vectors": VECTORS,
    "vectors_per_class": [2, 3, 1],
    "coefficients": [float(v) for v in RNG.normal(size=12)],
    "rho": [0.1, -0.2, 0.3],
    "classlabels_ints": [4, 7, 6],
}
PAIR = {**SVM, "vectors_per_class": [2, 4], "coefficients": SVM["coefficients"][:6], "rho": [0.1],
        "classlabels_ints": [4, 7]}  # fmt: skip
PARAMETERS = {"kernel_params": [0.5, 0.25, 3.0]}
WEIGHTS = [float(v) for v in RNG.normal(size=12)]
LINEAR = {"coefficients": WEIGHTS, "intercepts": [0.1, 0.2, -0.3], "classlabels_ints": [3, 1, 2]}
REGRESSION = {
    "coefficients": WEIGHTS[:6],
    "rho": [0.5],
    "support_vectors": VECTORS,
    "n_supports": 6,
}

NODES: dict[str, tuple[str, dict]] = {
    "sum": ("TreeEnsembleRegressor", trees("target", [0], MIXED, n_targets=1)),
    "average": ("TreeEnsembleRegressor", trees("target", [0, 1], MIXED, n_targets=2, base_values=[1.0, 2.0], aggregate_function="AVERAGE")),
    "least": ("TreeEnsembleRegressor", trees("target", [0], MIXED, n_targets=1, aggregate_function="MIN")),
    "greatest": ("TreeEnsembleRegressor", trees("target", [1, 0], MIXED, n_targets=2, aggregate_function="MAX")),
    "targets that some leaves leave out": ("TreeEnsembleRegressor", trees("target", [1], MIXED, n_targets=2)),
    "three classes": ("TreeEnsembleClassifier", trees("class", [0, 1, 2], MIXED, **THREE)),
    "three classes, softmax": ("TreeEnsembleClassifier", trees("class", [0, 1, 2], MIXED, **THREE, post_transform="SOFTMAX", base_values=[0.5, 1.0, -1.0])),
    "three classes, softmax of others than zero": ("TreeEnsembleClassifier", trees("class", [0, 1, 2], (1.0, 0.0, -2.0), **THREE, post_transform="SOFTMAX_ZERO")),
    "classes without a leaf": ("TreeEnsembleClassifier", trees("class", [1, 2], (-1.0, -2.0), **THREE)),
    "two classes": ("TreeEnsembleClassifier", trees("class", [0], MIXED, **TWO)),
    "two classes, logistic": ("TreeEnsembleClassifier", trees("class", [0], MIXED, **TWO, post_transform="LOGISTIC", base_values=[0.25])),
    "two classes, parts": ("TreeEnsembleClassifier", trees("class", [0], POSITIVE, **TWO)),
    "two classes, scores of the second": ("TreeEnsembleClassifier", trees("class", [1], POSITIVE, **TWO)),
    "two classes, scores of both": ("TreeEnsembleClassifier", trees("class", [0, 1], MIXED, **TWO)),
    "linear": ("LinearClassifier", LINEAR),
    "linear, softmax": ("LinearClassifier", {**LINEAR, "post_transform": "SOFTMAX"}),
    "linear, logistic": ("LinearClassifier", {**LINEAR, "post_transform": "LOGISTIC"}),
    "linear, probit": ("LinearClassifier", {**LINEAR, "coefficients": [0.01] * 12, "intercepts": [0.5] * 3, "post_transform": "PROBIT"}),
    "linear, one score": ("LinearClassifier", {"coefficients": WEIGHTS[:4], "intercepts": [0.1], "classlabels_ints": [8, 2]}),
    "votes": ("SVMClassifier", {**SVM, **PARAMETERS, "kernel_type": "RBF"}),
    "votes, polynomial": ("SVMClassifier", {**SVM, **PARAMETERS, "kernel_type": "POLY"}),
    "votes of two": ("SVMClassifier", {**PAIR, **PARAMETERS, "kernel_type": "SIGMOID"}),
    "votes of two, linear": ("SVMClassifier", {**PAIR, **PARAMETERS, "kernel_type": "LINEAR"}),
    "vectors": ("SVMRegressor", {**REGRESSION, **PARAMETERS, "kernel_type": "RBF"}),
    "outliers": ("SVMRegressor", {**REGRESSION, **PARAMETERS, "kernel_type": "RBF", "one_class": 1}),
    "maximum": ("Normalizer", {"norm": "MAX"}),
    "magnitudes": ("Normalizer", {"norm": "L1"}),
    "length": ("Normalizer", {"norm": "L2"}),
    "missing": ("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}),
}  # fmt: skip


def model(nodes: dict[str, tuple[str, dict]], rows: int | str | None = 7) -> ir.Model:
    """Return a model of all ``nodes`` on ``x``; nodes that do not allow NaN read ``clean``.

    Vectors have no dim of rows.
    """
    dims = [4] if rows is None else [rows, 4]
    made = []
    for name, (op_type, attributes) in nodes.items():
        source = "x" if op_type.startswith("Tree") or name == "missing" else "clean"
        results = [f"{name} {k}" for k in range(2 if op_type.endswith("Classifier") else 1)]
        made.append(helper.make_node(op_type, [source], results, domain=ML, **attributes))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name in ("x", "clean")
    ]
    outputs = [onnx.ValueInfoProto(name=name) for node in made for name in node.output]
    graph = helper.make_graph(made, "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    found = ir.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    ShapeInference(found).infer_model()
    return found


GIVEN = (X, np.nan_to_num(X))


@cache
def results(target: str) -> dict[str, np.ndarray]:
    whole = model(NODES)
    run = smelt.compile(whole, target=target) if target else OnnxRuntime(whole)
    names = [value.name for value in whole.graph.outputs]
    return dict(zip(names, run(*GIVEN), strict=True))


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("target", ["c", "host"])
def test_as_onnx_runtime(target: str, name: str) -> None:
    for output, wanted in results("").items():
        if output.rpartition(" ")[0] == name:
            got = results(target)[output]
            assert got.dtype == wanted.dtype
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [None, 7, "N"])
def test_shapes_that_are_inferred_are_those_of_the_results(rows: int | str | None) -> None:
    """A vector is one row; ONNX Runtime accepts no vectors for trees."""
    nodes = {n: each for n, each in NODES.items() if rows or not each[0].startswith("Tree")}
    whole = model(nodes, rows)
    given = GIVEN if rows else tuple(array[0] for array in GIVEN)
    shapes = [tuple(value.shape or ()) for value in whole.graph.outputs]
    results = OnnxRuntime(whole)(*given)
    for shape, result in zip(shapes, results, strict=True):
        assert tuple(7 if dim == "N" else dim for dim in shape) == result.shape
    if rows is None:
        for got, wanted in zip(smelt.compile(whole, target="host")(*given), results, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


REFUSED = {
    "strings": ("LinearClassifier", {"coefficients": WEIGHTS, "intercepts": [0.1] * 3, "classlabels_strings": ["a", "b", "c"]}),
    "probabilities": ("SVMClassifier", {**SVM, "prob_a": [1.0] * 3, "prob_b": [1.0] * 3}),
    "two roots": ("TreeEnsembleRegressor", {**trees("target", [0], MIXED, n_targets=1), "nodes_truenodeids": [2, 0, 3, 0, 0, 1, 0, 0]}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_learned_models_are_refused(name: str) -> None:
    with pytest.raises(SmeltError) as caught:
        smelt.compile(model({name: REFUSED[name]}), target="host")
    assert caught.value.code in ("E201", "E402")


def test_any_number_of_rows() -> None:
    nodes = {name: node for name, node in NODES.items() if name in ("three classes", "votes")}
    artifact = smelt.compile(model(nodes, rows="N"), target="host")
    whole = artifact(*GIVEN)
    for row in range(len(X)):
        one = artifact(*(each[row : row + 1] for each in GIVEN))
        assert [each[0] for each in one[::2]] == [each[row] for each in whole[::2]]


def test_an_index_for_each_row_is_gathered() -> None:
    """Classifiers look up their labels in this way; the result has a shape unlike that of one
    index.
    """
    source = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]> '
        "g (int64[N,1] at) => (y) <int32[3] labels = {7, 8, 9}>"
        "{ y = ai.onnx.ml.ArrayFeatureExtractor(labels, at) }"
    )
    at = np.array([[2], [0], [1], [2]])
    for target, dims in (("c", {"N": 4}), ("host", None)):
        (y,) = smelt.compile(source, target=target, dims=dims)(at)
        assert y.tolist() == [[9, 7, 8, 9]]
