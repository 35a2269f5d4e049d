"""Handlers for operators that select, repeat or count elements: how they commute with Transpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.same_shape import static_shape
from smelt.passes.layout.commuted import (
    Commuted,
    Handler,
    Operands,
    Perm,
    Perms,
    first_is_data,
    inverse,
    normalized,
    rebuilt,
)
from smelt.passes.layout.transposed_resize import resize


def _quantization(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute QuantizeLinear and DequantizeLinear with one scale, or one for each index of an axis.

    Block-wise scales do not commute.
    """
    scale, block = node.inputs[1], node.attributes.get("block_size")
    shape = static_shape(scale) if scale is not None else None
    if shape is None or len(shape) > 1 or (block is not None and block.as_int()):
        return None
    if not shape or shape[0] == 1:
        return Commuted(perm, lambda b, operands: rebuilt(b, node, operands))
    axes = normalized([node.attributes.get_int("axis", 1)], len(perm))
    if axes is None:
        return None
    return Commuted(perm, lambda b, operands: rebuilt(b, node, operands, axis=perm[axes[0]]))


def _top_k(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute TopK if it is sorted.

    The order of unsorted results differs between runtimes, and may depend on the layout.
    """
    axes = normalized([node.attributes.get_int("axis", -1)], len(perm))
    if axes is None or not node.attributes.get_int("sorted", 1):
        return None
    return Commuted(perm, lambda b, operands: rebuilt(b, node, operands, axis=perm[axes[0]]))


def _cum_sum(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute CumSum, whose axis is an operand: a scalar or a vector of one element; None if the
    axis is not constant.
    """
    array = constants.get(node.inputs[1])
    axes = normalized(constants.ints(node.inputs[1]), len(perm))
    if array is None or axes is None or len(axes) != 1:
        return None
    axis = np.full(array.shape, perm[axes[0]], array.dtype)
    return Commuted(perm, lambda b, operands: rebuilt(b, node, [operands[0], b.constant(axis)]))


def _gather(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Gather: the dims of the indices replace the axis in both layouts; None if the rank of
    the indices is unknown.
    """
    indices = node.inputs[1]
    axes = normalized([node.attributes.get_int("axis", 0)], len(perm))
    if axes is None or indices is None or indices.shape is None:
        return None
    untransposed_axis, index_rank = perm[axes[0]], len(indices.shape)
    result: list[int] = []
    for axis in perm:
        if axis == untransposed_axis:
            result.extend(range(untransposed_axis, untransposed_axis + index_rank))
        else:
            result.append(axis if axis < untransposed_axis else axis - 1 + index_rank)
    return Commuted(
        tuple(result), lambda b, operands: rebuilt(b, node, operands, axis=untransposed_axis)
    )


def _tile(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Tile: permute the numbers of repetitions; None if these are not constant."""
    return _with_permuted_operand(node, constants.ints(node.inputs[1]), perm)


def _expand(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Expand. A shorter shape is aligned to the last dim; a longer one does not commute."""
    shape = constants.ints(node.inputs[1])
    if shape is None or len(shape) > len(perm):
        return None
    return _with_permuted_operand(node, (1,) * (len(perm) - len(shape)) + shape, perm)


def _with_permuted_operand(
    node: ir.Node, numbers: tuple[int, ...] | None, perm: Perm
) -> Commuted | None:
    """Commute a node whose second operand has one number for each dim (``numbers``).

    The operand gets the numbers in the order of the dims before the Transpose. Returns None if
    ``numbers`` is None or has another length.
    """
    if numbers is None or len(numbers) != len(perm):
        return None
    untransposed_numbers = [numbers[axis] for axis in inverse(perm)]
    return Commuted(
        perm, lambda b, operands: rebuilt(b, node, [operands[0], b.const_i64(untransposed_numbers)])
    )


def _shape(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Shape: gather the sizes before the Transpose in the order after it."""
    start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(perm))
    chosen = perm[slice(start, end)]

    def build(b: Builder, operands: Operands) -> Sequence[ir.Value]:
        """Return the sizes of the untransposed operand in the order after the Transpose."""
        return (b.op("Gather", b.op("Shape", operands[0]), b.const_i64(chosen)),)

    return Commuted((0,), build)


def _size(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Size, whose result is the same in any layout."""
    return Commuted((), lambda b, operands: rebuilt(b, node, operands))


_BY_OPERATOR: Mapping[str, Handler] = {
    "CumSum": _cum_sum,
    "DequantizeLinear": _quantization,
    "Expand": _expand,
    "Gather": _gather,
    "QuantizeLinear": _quantization,
    "Resize": resize,
    "Shape": _shape,
    "Size": _size,
    "Tile": _tile,
    "TopK": _top_k,
}

HANDLERS = {op_type: first_is_data(handler) for op_type, handler in _BY_OPERATOR.items()}
