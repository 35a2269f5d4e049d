"""Bring the other operands of an elementwise operator into the layout before a Transpose.

A constant is permuted at compile time. For a dequantized constant the integers are permuted, and
the axis of its scales is renumbered. A tensor of one element broadcasts in any layout. A tensor
whose dims keep their order, such as a vector, is reshaped, which moves no elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants, is_constant
from smelt.passes.layout.commuted import Perm, inverse
from smelt.passes.quantize.quantization import Quantization

Make: TypeAlias = Callable[[Builder], "ir.Value | None"]
"""Builds an operand in the layout before the Transpose."""


def untransposed_operand(value: ir.Value, perm: Perm, constants: Constants) -> Make | None:
    """Return a builder of ``value`` in the layout that the other operand has before its Transpose.

    None if that would need a Transpose, or if the rank is unknown.
    """
    if value.shape is not None and len(value.shape) == 0:
        return lambda b: value
    if value.shape is not None and value.shape[0] != 1:
        first_axis = len(perm) - len(value.shape)
        if first_axis >= 0 and perm[first_axis:] == tuple(range(first_axis, len(perm))):
            return lambda b: value  # its axes keep their places
    array = constants.get(value, limit=None)
    if array is not None:
        if array.ndim > len(perm):
            return None
        moved = untransposed(array, perm)
        return lambda b: b.constant(moved)
    if value.shape is None or len(value.shape) > len(perm):
        return None
    if all(dim == 1 for dim in value.shape):
        return lambda b: value
    return _dequantized(value, perm, constants) or _reshaped(value, value.shape, perm)


def untransposed(array: np.ndarray, perm: Perm) -> np.ndarray:
    """Return a broadcasting constant in the layout before the Transpose.

    The result has no leading dims of 1: target ``ort`` fuses an Add of a row only if the row is a
    vector, as BiasGelu and MatMulNBits of ONNX Runtime require.
    """
    if array.size == 1:
        return array.reshape(()) if array.ndim else array
    full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    moved = np.ascontiguousarray(full.transpose(inverse(perm)))
    while moved.ndim > 1 and moved.shape[0] == 1:
        moved = moved[0]
    return moved


def _dequantized(value: ir.Value, perm: Perm, constants: Constants) -> Make | None:
    """Return a builder of a permuted DequantizeLinear of a constant, scaled by tensor or axis; None
    for any other value.
    """
    node = value.producer()
    if node is None or node.op_type != "DequantizeLinear" or node.domain:
        return None
    data, quantization = node.inputs[0], Quantization.of(node)
    array = constants.get(data, limit=None) if data is not None else None
    if array is None or quantization is None or quantization.block_size:
        return None
    if not all(v is None or is_constant(v) for v in node.inputs):
        return None
    integers = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    integers = np.ascontiguousarray(integers.transpose(inverse(perm)))
    attributes = [
        attr for attr in node.attributes.values() if attr.name not in ("axis", "block_size")
    ]
    if quantization.axis is not None:
        if not 0 <= quantization.axis < array.ndim:
            return None
        axis = perm[quantization.axis + len(perm) - array.ndim]
        attributes.append(ir.AttrInt64("axis", axis))

    def make(b: Builder) -> ir.Value:
        """Return a DequantizeLinear of the permuted integers."""
        operands = (b.constant(integers), *node.inputs[1:])
        return b.add(ir.Node("", "DequantizeLinear", operands, attributes))[0]

    return make


def _reshaped(value: ir.Value, shape: ir.Shape, perm: Perm) -> Make | None:
    """Return a builder of ``value`` with its dims of 1 moved; None if its other dims change
    order."""
    lead = len(perm) - len(shape)
    positions = [perm[lead + axis] for axis, dim in enumerate(shape) if dim != 1]
    if positions != sorted(positions):
        return None
    dims = [dim if isinstance(dim, int) else -1 for dim in shape if dim != 1]
    if dims.count(-1) > 1 or 0 in dims:
        return None
    target = [1] * len(perm)
    for position, size in zip(positions, dims, strict=True):
        target[position] = size
    target = target[positions[0] :]
    return lambda b: b.op("Reshape", value, b.const_i64(target))
