"""Lowers linear models."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.learned.scores import (
    FLOAT,
    INT64,
    ML,
    best_labels,
    columns,
    features_of,
    floats,
    labels_of,
    transformed,
)
from smelt.program.lower.registry import lowers


@lowers(f"{ML}::LinearRegressor")
def linear_regressor(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``x @ coefficients.T + intercepts`` for each target."""
    m = Steps(cx)
    if node.attributes.get_string("post_transform", "NONE") != "NONE":
        raise cx.refuse("it has a post_transform, which smelt does not lower")
    m.set_output(node.outputs[0], _products(m, node, node.attributes.get_int("targets", 1)))


@lowers(f"{ML}::LinearClassifier")
def linear_classifier(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit labels and scores of a linear classifier.

    It has one score per class, or one score of the second of two classes.
    """
    m = Steps(cx)
    labels = labels_of(m, node)
    transform = node.attributes.get_string("post_transform", "NONE")
    count = len(floats(node, "intercepts"))
    scores = _products(m, node, count)
    if count > 1:
        m.set_output(node.outputs[0], best_labels(m, scores, labels))
        m.set_output(node.outputs[1], transformed(m, scores, transform))
        return
    score = scores.reshape(scores.shape[0])
    two = labels if len(labels) == 2 else np.array([0, 1])
    m.set_output(node.outputs[0], m.constant(two).gather(m.op("Greater", score, 0.0).cast(INT64)))
    if transform != "NONE":
        raise cx.refuse(f"smelt does not lower post_transform {transform} of a single score")
    m.set_output(node.outputs[1], columns(m, -score + 1.0, score) if len(labels) == 2 else scores)


def _products(m: Steps, node: ir.Node, targets: int) -> Array:
    """Return ``x @ coefficients.T + intercepts`` as [N, targets]."""
    x, weights = features_of(m, node), floats(node, "coefficients")
    if targets < 1 or len(weights) % targets or len(weights) // targets != x.shape[1]:
        raise m.cx.refuse(f"it has {len(weights)} coefficients for {x.shape[1]} features")
    result = m.dot("nf,tf->nt", x, m.constant(weights.reshape(targets, -1), FLOAT))
    bias = floats(node, "intercepts")
    return result + m.constant(bias, FLOAT) if len(bias) else result
