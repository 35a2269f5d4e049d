"""NumPy functions for the ONNX operators whose result sizes depend on values, such as NonZero."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.targets.host.kernels.kernel import Array
from smelt.targets.host.kernels.selected import distinct_rows, selected_boxes_of

Arrays = Sequence["Array | None"]


def _non_zero(node: ir.Node, operands: Arrays) -> Sequence[Array]:
    """Return the indices of the nonzero elements, a row for each dim."""
    x = _present(node, operands, 0)
    return (np.stack(np.nonzero(x)) if x.ndim else np.zeros((0, int(x != 0)), np.int64),)


def _compress(node: ir.Node, operands: Arrays) -> Sequence[Array]:
    """Return the selected slices along the axis, or the selected elements."""
    x, condition = _present(node, operands, 0), _present(node, operands, 1)
    by_axis = "axis" in node.attributes
    x = x if by_axis else x.reshape(-1)
    axis = node.attributes.get_int("axis", 0) if by_axis else 0
    return (np.compress(condition[: x.shape[axis]], x, axis),)


def _unique(node: ir.Node, operands: Arrays) -> Sequence[Array]:
    """Return the unique rows or elements, their first indices, the inverse, and counts."""
    x = _present(node, operands, 0)
    by_axis = "axis" in node.attributes
    axis = node.attributes.get_int("axis", 0) if by_axis else 0
    rows = np.moveaxis(x, axis, 0) if by_axis else x.reshape(-1)
    first, number = distinct_rows(rows, bool(node.attributes.get_int("sorted", 1)))
    counts = np.bincount(number, minlength=len(first)).astype(np.int64)
    return np.moveaxis(rows[first], 0, axis if by_axis else 0), first, number, counts


def _boxes(node: ir.Node, operands: Arrays) -> Sequence[Array]:
    """Return batch, class and box index of each box that NonMaxSuppression selects."""
    boxes, scores = _present(node, operands, 0), _present(node, operands, 1)
    max_count, overlap, min_score = (operands[i] if i < len(operands) else None for i in (2, 3, 4))
    centred = bool(node.attributes.get_int("center_point_box", 0))
    if max_count is None:
        return (np.zeros((0, 3), np.int64),)
    return (selected_boxes_of(boxes, scores, max_count, overlap, min_score, centred),)


def _present(node: ir.Node, operands: Arrays, position: int) -> Array:
    """Return input ``position`` of ``node``; raises UsageError E671 if it is missing."""
    array = operands[position] if position < len(operands) else None
    if array is None:
        raise UsageError(
            "E671",
            f"input {position} of {node.op_type} is missing",
            why="the operator computes its result from this input",
            fix="pass an array for each input of the model",
        )
    return array


DATA_DEPENDENT: Mapping[str, Callable[[ir.Node, Arrays], Sequence[Array]]] = {
    "NonZero": _non_zero,
    "Compress": _compress,
    "Unique": _unique,
    "NonMaxSuppression": _boxes,
}
"""Operator to a function of node and operands that returns all results."""
