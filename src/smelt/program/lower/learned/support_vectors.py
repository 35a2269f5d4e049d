"""Lowers support vector machines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.learned.scores import (
    FLOAT,
    ML,
    best_labels,
    columns,
    features_of,
    floats,
    labels_of,
    transformed,
)
from smelt.program.lower.registry import lowers


@lowers(f"{ML}::SVMRegressor")
def svm_regressor(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the weighted sum of the kernel of each row with each support vector: [N, 1]."""
    m, attributes = Steps(cx), node.attributes
    if attributes.get_string("post_transform", "NONE") != "NONE":
        raise cx.refuse("it has a post_transform, which smelt does not lower")
    x, coefficients = features_of(m, node), floats(node, "coefficients")
    count = attributes.get_int("n_supports", 0)
    if count:
        x = _kernel(m, node, x, floats(node, "support_vectors").reshape(count, -1))
    result = _products(m, x, coefficients.reshape(1, -1)) + float(floats(node, "rho")[0])
    if attributes.get_int("one_class", 0):
        result = m.op("Greater", result, 0.0).cast(FLOAT) * 2.0 - 1.0
    m.set_output(node.outputs[0], result)


@lowers(f"{ML}::SVMClassifier")
def svm_classifier(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit labels by votes of the pairs of classes, and the scores of the pairs."""
    m = Steps(cx)
    labels = labels_of(m, node)
    if len(floats(node, "prob_a")):
        raise cx.refuse(
            "it returns probabilities, which an iteration fits to the scores of the pairs",
            fix="train with probability=False",
        )
    if len(labels) < 2:
        raise cx.refuse(f"it has {len(labels)} classes, and needs 2 or more")
    transform = node.attributes.get_string("post_transform", "NONE")
    sizes = node.attributes.get_ints("vectors_per_class", ())
    if not sum(sizes):
        raise cx.refuse("it has no support vectors")
    x = features_of(m, node)
    vectors = floats(node, "support_vectors").reshape(sum(sizes), -1)
    pairs = list(combinations(range(len(labels)), 2))
    weights = _pairwise(floats(node, "coefficients"), sizes, pairs)
    scores = _products(m, _kernel(m, node, x, vectors), weights)
    scores = scores + m.constant(floats(node, "rho")[: len(pairs)], FLOAT)
    is_first_class = m.op("Greater", scores, 0.0).cast(FLOAT)
    m.set_output(
        node.outputs[0], best_labels(m, _votes(m, is_first_class, pairs, len(labels)), labels)
    )
    if len(labels) > 2:
        m.set_output(node.outputs[1], transformed(m, scores, transform))
        return
    score = scores.reshape(scores.shape[0])
    if transform != "NONE":
        raise cx.refuse(f"smelt does not lower post_transform {transform} of a single score")
    m.set_output(node.outputs[1], columns(m, -score, score))


def _pairwise(
    coefficients: np.ndarray, sizes: Sequence[int], pairs: list[tuple[int, int]]
) -> np.ndarray:
    """Return the weight of each vector in the score of each pair of classes: [pairs, vectors].

    The layout is that of LIBSVM: row j - 1 of ``coefficients`` [classes - 1, vectors] holds, for a
    vector of class i, its weight against class j if j > i; else row j does.
    """
    starts = np.cumsum([0, *sizes])
    table = coefficients.reshape(len(sizes) - 1, -1)
    weights = np.zeros((len(pairs), starts[-1]), np.float32)
    for row, (i, j) in enumerate(pairs):
        of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        weights[row, of_i], weights[row, of_j] = table[j - 1, of_i], table[i, of_j]
    return weights


def _votes(m: Steps, is_first_class: Array, pairs: list[tuple[int, int]], classes: int) -> Array:
    """Return the number of pairs that each class wins: [N, classes].

    ``is_first_class`` [N, pairs] is 1 if the first class of the pair wins, else 0. The votes are a
    matrix product: +1 for the first class of a pair, and 1 - x for the second.
    """
    signs = np.zeros((classes, len(pairs)), np.float32)
    lost = np.zeros(classes, np.float32)
    for column, (i, j) in enumerate(pairs):
        signs[i, column], signs[j, column] = 1, -1
        lost[j] += 1
    return _products(m, is_first_class, signs) + m.constant(lost, FLOAT)


def _products(m: Steps, x: Array, weights: np.ndarray) -> Array:
    """Return the products of each row of ``x`` with each row of ``weights``."""
    if weights.shape[1] != x.shape[1]:
        raise m.cx.refuse(f"it has {weights.shape[1]} coefficients for {x.shape[1]} features")
    return m.dot("nf,tf->nt", x, m.constant(weights, FLOAT))


def _kernel(m: Steps, node: ir.Node, x: Array, vectors: np.ndarray) -> Array:
    """Return the kernel of each row with each support vector as [N, vectors]."""
    kind = node.attributes.get_string("kernel_type", "LINEAR")
    gamma, coefficient, degree = [*map(float, floats(node, "kernel_params")), 0.0, 0.0, 0.0][:3]
    if kind == "RBF":
        difference = x.reshape(x.shape[0], 1, x.shape[1]) - m.constant(vectors[None], FLOAT)
        return m.op("Exp", (difference * difference).reduce("ReduceSum", 2) * -gamma)
    products = _products(m, x, vectors)
    if kind == "LINEAR":
        return products
    inner = products * gamma + coefficient
    if kind == "POLY":
        return m.op("Pow", inner, degree)
    if kind == "SIGMOID":
        return m.op("Tanh", inner)
    raise m.cx.refuse(f"smelt does not lower kernel_type {kind}")
