"""Labels of a classifier, and transformations of its scores."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Array, Steps

ML = "ai.onnx.ml"
FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


def features_of(m: Steps, node: ir.Node) -> Array:
    """Return the first input as rows of float32; a vector is one row."""
    x = m.array(node.inputs[0])
    if len(x.shape) not in (1, 2):
        raise m.cx.refuse("its features are not a matrix")
    x = x.cast(FLOAT)
    return x if len(x.shape) == 2 else x.reshape(1, x.shape[0])


def labels_of(m: Steps, node: ir.Node) -> np.ndarray:
    """Return the class labels; refuses strings."""
    attributes = node.attributes
    if attributes.get_strings("classlabels_strings", ()):
        raise m.cx.refuse("its labels are strings", fix="train with integers for labels")
    labels = attributes.get_ints("classlabels_ints", ()) or attributes.get_ints(
        "classlabels_int64s", ()
    )
    return np.asarray(labels, np.int64)


def floats(node: ir.Node, name: str) -> np.ndarray:
    """Return an attribute of floats, empty if absent."""
    return np.asarray(node.attributes.get_floats(name, ()), np.float32)


def best_labels(m: Steps, scores: Array, labels: np.ndarray) -> Array:
    """Return the label of the first greatest score of each row."""
    index = m.emit(
        "ArgMax", (scores,), scores.shape[:1], INT64, axis=1, keepdims=0, select_last_index=0
    )
    return m.constant(labels).gather(index)


def columns(m: Steps, *scores: Array) -> Array:
    """Return scores [N] as the columns of a matrix."""
    return m.concat([score.reshape(score.shape[0], 1) for score in scores], 1)


def transformed(m: Steps, scores: Array, transform: str) -> Array:
    """Return ``scores`` [N, E] of two or more columns after the post_transform."""
    if transform == "LOGISTIC":
        return m.op("Sigmoid", scores)
    if transform == "SOFTMAX":
        return m.emit("Softmax", (scores,), scores.shape, axis=1)
    if transform == "SOFTMAX_ZERO":
        return _softmax_of_nonzero(m, scores)
    if transform == "PROBIT":
        return probit(m, scores)
    if transform != "NONE":
        raise m.cx.refuse(f"smelt does not lower post_transform {transform}")
    return scores


def _softmax_of_nonzero(m: Steps, scores: Array) -> Array:
    """Return a Softmax over the scores that are not 0 (above 1e-7); the others stay near 0.

    It is ``SOFTMAX_ZERO`` as ONNX Runtime computes it.
    """
    top = scores.reduce("ReduceMax", 1, keep=True)
    counts = m.op("Greater", m.op("Abs", scores), 1e-7)
    powers = m.op("Where", counts, m.op("Exp", scores - top), scores * m.op("Exp", -top))
    return powers / m.op("Where", counts, powers, 0.0).reduce("ReduceSum", 1, keep=True)


def probit(m: Steps, scores: Array) -> Array:
    """Return the probit (quantile of the normal distribution) of each score, as ONNX Runtime does.

    That is sqrt(2) * erfinv(2 * score - 1), with Winitzki's approximation of erfinv.
    """
    winitzki = 0.147
    x = scores * 2.0 - 1.0
    log = m.op("Log", (-x + 1.0) * (x + 1.0))
    half_sum = log * 0.5 + 2 / (3.14159 * winitzki)
    root = m.op("Sqrt", m.op("Sqrt", half_sum * half_sum - log * (1 / winitzki)) - half_sum)
    return m.op("Where", m.op("Less", x, 0.0), -root, root) * math.sqrt(2)
