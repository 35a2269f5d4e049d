"""Compute Transpose, Reshape and GatherND of constants, for constant folding, by NumPy's indexing.

PyTorch's exports have many of them. A reference kernel of onnx needs a protobuf and 150
microseconds for a Transpose, which here is a view, and half a second for a GatherND from a table of
200,000 numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir


def moved(node: ir.Node, inputs: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """Return the result of a Transpose, a GatherND, or a Reshape to a shape without 0.

    Returns None for other nodes and for operands that do not fit.
    """
    source = inputs[0] if inputs else None
    if node.domain or source is None:
        return None
    if node.op_type == "Transpose" and len(inputs) == 1:
        return _transposed(node, source)
    if node.op_type == "Reshape" and len(inputs) == 2:
        return _reshaped(source, inputs[1])
    if node.op_type == "GatherND" and len(inputs) == 2:
        return _gathered(node, source, inputs[1])
    return None


def _gathered(node: ir.Node, source: np.ndarray, indices: np.ndarray | None) -> np.ndarray | None:
    """Return the result of GatherND; None for attributes or operands that do not fit."""
    attribute = node.attributes.get("batch_dims")
    if attribute is not None and (attribute.is_ref() or attribute.type != ir.AttributeType.INT):
        return None
    batches = 0 if attribute is None else attribute.as_int()
    if indices is None or indices.dtype != np.int64 or not 0 <= batches < indices.ndim:
        return None
    depth = indices.shape[-1]
    if not 1 <= depth <= source.ndim - batches:
        return None
    if source.shape[:batches] != indices.shape[:batches]:
        return None
    batch_shape = indices.shape[:-1]
    rows = [
        np.arange(batch_shape[i]).reshape(-1, *(1,) * (len(batch_shape) - i - 1))
        for i in range(batches)
    ]
    try:
        result: np.ndarray = source[(*rows, *np.moveaxis(indices, -1, 0))]
    except IndexError:
        return None
    return result


def _transposed(node: ir.Node, source: np.ndarray) -> np.ndarray | None:
    """Return ``source`` transposed; None for an invalid permutation."""
    attribute = node.attributes.get("perm")
    if attribute is None:
        return source.transpose()
    if attribute.is_ref() or attribute.type != ir.AttributeType.INTS:
        return None
    perm = list(attribute.as_ints())
    return source.transpose(perm) if sorted(perm) == list(range(source.ndim)) else None


def _reshaped(source: np.ndarray, shape: np.ndarray | None) -> np.ndarray | None:
    """Return ``source`` reshaped; None for a shape with 0, which means different things by
    ``allowzero``.
    """
    if shape is None or shape.ndim != 1 or shape.dtype != np.int64:
        return None
    if not shape.all() or bool((shape < -1).any()):
        return None
    try:
        return source.reshape(tuple(map(int, shape)))
    except ValueError:
        return None
