"""Replaces convolutions and matrix products between quantized numbers by QLinear instructions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction
from smelt.program.quantized_values import Quantized, Step, Values, Weights, instruction_of

NEAR = 4e-7
"""Relative tolerance between the scale of a bias and the product of the other scales."""


def convolution(
    values: Values, conv: Instruction, step: Step, output: int
) -> list[Instruction] | None:
    """Return a QLinearConv; None unless weights and bias are constants with one scale per
    filter."""
    image, weights = values.quantized(conv.inputs[0]), values.weights(conv.inputs[1])
    if image is None or weights is None or weights.axis not in (-1, 0):
        return None
    bias_slot = conv.inputs[2] if len(conv.inputs) > 2 else -1
    bias = _bias(values, bias_slot, image, weights, weights.bytes.shape[0])
    if bias is None:
        return None
    inputs = _operands(values, image, weights, step, bias)
    return [Instruction("QLinearConv", inputs, (output,), dict(conv.attributes), (), conv.origin)]


def matrix_product(
    values: Values, inner: Instruction, step: Step, output: int
) -> list[Instruction] | None:
    """Return a QLinearMatMul for a DotGeneral and an Add of a bias, its ninth input; None if not
    possible."""
    dot, bias_slot = (inner, -1) if inner.op == "DotGeneral" else _with_bias(values, inner)
    if dot is None:
        return None
    dims = dot.attributes["dims"]
    rows, weights = values.quantized(dot.inputs[0]), values.weights(dot.inputs[1])
    if rows is None or weights is None or not isinstance(dims, DotDims) or weights.bytes.ndim != 2:
        return None
    rank = len(values.program.slots[dot.inputs[0]].shape)
    if dims.lhs_batch or dims.lhs_contracting != (rank - 1,) or len(dims.rhs_contracting) != 1:
        return None
    if dot.attributes.get("semiring", "sum_product") != "sum_product":
        return None
    (contracted,) = dims.rhs_contracting
    if weights.axis == contracted:
        return None
    if contracted == 1:
        weights = replace(weights, bytes=weights.bytes.T)
    bias = _bias(values, bias_slot, rows, weights, weights.bytes.shape[1])
    if bias is None:
        return None
    inputs = _operands(values, rows, weights, step, bias)
    return [instruction_of(dot.origin, "QLinearMatMul", inputs, output)]


def _with_bias(values: Values, add: Instruction) -> tuple[Instruction | None, int]:
    """Return the DotGeneral that ``add`` reads, and the slot of its other operand; (None, -1)
    without one."""
    for dot, bias in (add.inputs, add.inputs[::-1]):
        product = values.writer_read_once(dot)
        if product is not None and product.op == "DotGeneral":
            return product, bias
    return None, -1


def _operands(
    values: Values, x: Quantized, w: Weights, step: Step, bias: np.ndarray
) -> tuple[int, ...]:
    """Return the input slots of a QLinearConv."""

    def constant(array: object, dtype: object, name: str) -> int:
        """Return a new slot with ``array``."""
        return values.new_constant(np.asarray(array, dtype), name)  # type: ignore[call-overload]

    return (
        x.slot,
        constant(x.step.scale, np.float32, "scale"),
        constant(x.step.zero, x.step.dtype.numpy(), "zero point"),
        values.new_constant(w.bytes, "weights"),
        values.new_constant(w.scales, "scales"),
        values.new_constant(w.zeros, "zero points"),
        constant(step.scale, np.float32, "scale"),
        constant(step.zero, step.dtype.numpy(), "zero point"),
        values.new_constant(bias, "bias"),
    )


def _bias(values: Values, slot: int, x: Quantized, w: Weights, count: int) -> np.ndarray | None:
    """Return the bias: int32 in quantization steps of the sums, or float32 in real numbers.

    None if it is not constant, not finite or too long.
    """
    if slot < 0:
        return np.zeros(count, np.int32)
    dequantize = values.writer_of.get(slot)
    array = values.program.constants.get(slot)
    if array is None and dequantize is not None and dequantize.op == "DequantizeLinear":
        array, scale = values.constant(dequantize, 0), values.constant(dequantize, 1)
        zero = values.constant(dequantize, 2)
        if array is None or scale is None or (zero is not None and zero.any()):
            return None
        if scale.size not in (1, array.size) or array.dtype != np.int32:
            return None
        sum_step = np.float64(x.step.scale) * w.scales.astype(np.float64)
        ratio_of_scales = scale.reshape(-1).astype(np.float64) / sum_step
        if not np.abs(ratio_of_scales - 1).max() < NEAR:
            array = array.astype(np.float32) * np.broadcast_to(scale.reshape(-1), array.shape)
    elif array is None or array.dtype != np.float32:
        return None
    length = array.shape[-1] if array.ndim else 1
    if array.size not in (1, count) or array.size != length:  # other axes must have size 1
        return None
    return np.broadcast_to(array.reshape(-1), (count,)) if np.isfinite(array).all() else None
