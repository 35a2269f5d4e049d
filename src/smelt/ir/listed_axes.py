"""The axes that nodes list as an attribute or constant, and repeated axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.node_inputs import optional_input

NORM = "MeanVarianceNormalization"
AXES_OF_NORM = (0, 2, 3)
"""The default of MeanVarianceNormalization, which fits images only."""


def listed_axes(node: ir.Node) -> list[int]:
    """Return the axes that ``node`` lists as an attribute or a constant; empty if computed at run
    time."""
    if "axes" in node.attributes:
        return list(node.attributes["axes"].as_ints())
    if node.op_type == NORM:
        return list(AXES_OF_NORM)
    source = optional_input(node, 1)
    tensor = ir.convenience.get_const_tensor(source) if source is not None else None
    return [] if tensor is None else [int(axis) for axis in np.ravel(tensor.numpy())]


def names_no_axes(node: ir.Node) -> bool:
    """True if ``node`` has a list of axes that is empty."""
    if "axes" in node.attributes:
        return not node.attributes["axes"].as_ints()
    source = optional_input(node, 1)
    return source is not None and source.shape is not None and list(source.shape) == [0]


def without_repeats(listed: Sequence[int], rank: int | None) -> list[int]:
    """Return ``listed`` without repeated axes; -1 and rank - 1 are the same axis."""
    axes: list[int] = []
    seen: set[int] = set()
    for axis in listed:
        nonnegative = axis + rank if axis < 0 and rank is not None else axis
        if nonnegative not in seen:
            axes.append(axis)
        seen.add(nonnegative)
    return axes
