"""Track one axis through a Transpose or reshape."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from smelt.ir.opset import RESHAPES
from smelt.ir.same_shape import Dim, same_dim
from smelt.passes.layout.merge_consecutive_transposes import permutation


def axis_after_move(node: ir.Node, axis: int) -> int | None:
    """Return the axis to which a Transpose or reshape moves ``axis`` of its operand.

    None if it is not proved: a reshape must keep the dim, and the number of elements before and
    after it.
    """
    if axis < 0:
        return None
    if node.op_type == "Transpose":
        order = permutation(node)
        return order.index(axis) if order is not None and axis < len(order) else None
    source = node.inputs[0]
    if node.op_type not in RESHAPES or source is None or source.shape is None:
        return None
    shape = node.outputs[0].shape
    if shape is None or axis >= len(source.shape):
        return None
    before, after = source.shape.dims, shape.dims
    for index, dim in enumerate(after):
        if (
            same_dim(dim, before[axis])
            and _same_volume(before[:axis], after[:index])
            and _same_volume(before[axis + 1 :], after[index + 1 :])
        ):
            return index
    return None


def _same_volume(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """True if both are products of the same numbers and the same symbols."""
    first, second = _volume(a), _volume(b)
    return first is not None and first == second


def _volume(dims: Sequence[Dim]) -> tuple[int, list[str]] | None:
    """Return the number of elements: the product of known dims, and the sorted names of the others.

    None for a dim without a name, which equals no other dim.
    """
    symbols = [dim.value for dim in dims if not isinstance(dim, int)]
    named = sorted(name for name in symbols if name is not None)
    if len(named) != len(symbols):
        return None
    return math.prod(dim for dim in dims if isinstance(dim, int)), named
