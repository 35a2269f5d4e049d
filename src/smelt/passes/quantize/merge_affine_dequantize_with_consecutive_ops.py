"""Move the integers of a quantized constant at compile time instead of its floats at run time.

    before   {W} ─> DequantizeLinear(s, z, axis=0) ─> Transpose ─> y
    after    {W moved} ─> DequantizeLinear(s, z, axis=1) ─> y

Applies to chains of Transpose, Reshape, Squeeze, Unsqueeze and Flatten.

Needs    (1) a known shape after the move. If scales belong to an axis or to blocks along it, the
         move must keep that axis; block-wise scales are moved as well and must be constant.
Keeps    (1) integers or floats with other readers, which would be stored twice; (2) a Reshape that
         merges the axis of the scales with others.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir import constants, scope
from smelt.ir.build import Builder
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import static_shape
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.quantize.axis_after_move import axis_after_move
from smelt.passes.quantize.quantization import Quantization

_dequantized = op("DequantizeLinear", var("data"), rest=True, name="dq")


@rule(op(("Transpose", *RESHAPES), _dequantized, rest=True))
def move_of_dequantize(m: Match, b: Builder) -> Replacement:
    """Replace the move by a DequantizeLinear of moved integers."""
    data, node = m["data"], m.node("dq")
    if not constants.is_constant(data):
        return None
    if not scope.has_one_use(data):  # keeps 1
        return Miss("the integers have other readers")
    quantization, shape = Quantization.of(node), static_shape(m.root.outputs[0])
    if quantization is None:  # needs 1
        return Miss("the element types or parameters of the quantization are unknown")
    if shape is None:  # needs 1
        return Miss(f"a dim of the result of the {m.root.op_type} is not constant")
    axis = quantization.axis
    if axis is not None:
        axis = axis_after_move(m.root, axis)
        if axis is None:  # keeps 2
            return Miss(f"the {m.root.op_type} does not keep the axis of the scales")
    parameters = _moved_parameters(m, b, quantization, axis, shape)
    array = m.array(data, limit=None)
    if parameters is None:
        return Miss("the scales or zero points are not constant")
    if array is None or array.size != math.prod(shape):
        return Miss("the number of integers is not that of the result")
    output_dtype = node.attributes.get("output_dtype")
    return b.op(
        "DequantizeLinear",
        b.constant(_moved_array(m.root, array, shape), data.name),
        *parameters,
        axis=axis,
        block_size=quantization.block_size or None,
        output_dtype=output_dtype.as_int() if output_dtype is not None else None,
    )


def _moved_parameters(
    m: Match, b: Builder, old: Quantization, axis: int | None, shape: tuple[int, ...]
) -> list[ir.Value | None] | None:
    """Return scale and zero point after the move; None if they are not constant or do not fit.

    A single parameter becomes a scalar; block-wise parameters are moved like the integers.
    """
    old_parameters = [old.scale, old.zero_point]
    if axis is None:
        new_shape: tuple[int, ...] = ()
    elif old.block_size:
        new_shape = (*shape[:axis], -(-shape[axis] // old.block_size), *shape[axis + 1 :])
    else:
        return old_parameters
    new_parameters: list[ir.Value | None] = []
    for value in old_parameters:
        if value is None or static_shape(value) == () == new_shape:
            new_parameters.append(value)
            continue
        array = m.array(value, limit=None)
        if array is None or array.size != math.prod(new_shape):
            return None
        moved = array.reshape(()) if axis is None else _moved_array(m.root, array, new_shape)
        new_parameters.append(b.constant(moved, value.name))
    return new_parameters


def _moved_array(node: ir.Node, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return ``array`` moved as ``node`` moves its input, with the result shape ``shape``."""
    if node.op_type == "Transpose":
        return np.ascontiguousarray(array.transpose(permutation(node))).reshape(shape)
    return array.reshape(shape)


merge_affine_dequantize_with_consecutive_ops = rule_pass(
    "merge_affine_dequantize_with_consecutive_ops",
    __doc__,
    [move_of_dequantize],
    exactness=EXACT,
    source="Core ML MIL: common::merge_affine_dequantize_with_consecutive_ops",
)
