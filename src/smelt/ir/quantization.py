"""The scale and zero point of quantized values, read off the operators around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants


@dataclass(frozen=True, slots=True)
class Quantization:
    """An integer ``q`` stands for ``(q - zero_point) * scale``.

    There is one scale and zero point for the whole tensor, or one for each index of ``axis``.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class _ParameterInputs:
    """Input positions of scale and zero point.

    ``axis`` is the axis of per-axis scales if the operator fixes it; None if an attribute names it.
    """

    scale: int
    zero_point: int
    axis: int | None = None


QUANTIZING: Mapping[str, _ParameterInputs] = {
    "QuantizeLinear": _ParameterInputs(1, 2),
    "QLinearConv": _ParameterInputs(6, 7, 0),
    "QLinearMatMul": _ParameterInputs(6, 7, -2),
}
"""Operators that quantize their result."""
QUANTIZED_OPERANDS: Mapping[tuple[str, int], _ParameterInputs] = {
    ("DequantizeLinear", 0): _ParameterInputs(1, 2),
    ("QLinearConv", 0): _ParameterInputs(1, 2, 0),
    ("QLinearConv", 3): _ParameterInputs(4, 5, 0),
    ("QLinearMatMul", 0): _ParameterInputs(1, 2, -2),
    ("QLinearMatMul", 3): _ParameterInputs(4, 5, -1),
}
"""Operators, with an input position, that read a quantized operand."""


def quantization_of(value: ir.Value) -> Quantization | None:
    """Return the quantization of ``value`` by constant scales of its producer and of all consumers.

    None for values that are not quantized, for scales that are computed or blocked, and if two
    operators disagree: then a node between them reinterprets the numbers with another scale.
    """
    if value.dtype is None or not value.dtype.is_integer():
        return None
    stated = set(_stated_quantizations(value))
    return stated.pop() if len(stated) == 1 else None


def _stated_quantizations(value: ir.Value) -> Iterator[Quantization | None]:
    """Yield the quantization of ``value`` by its producer's operands, and by those of each
    consumer."""
    producer = value.producer()
    if producer is not None and not producer.domain and producer.op_type in QUANTIZING:
        yield _stated_by(producer, QUANTIZING[producer.op_type], value)
    for node, position in value.uses():
        inputs = QUANTIZED_OPERANDS.get((node.op_type, position))
        if inputs is not None and not node.domain:
            yield _stated_by(node, inputs, value)


def _stated_by(node: ir.Node, inputs: _ParameterInputs, value: ir.Value) -> Quantization | None:
    """Return the quantization of ``value`` by the scale and zero point inputs of ``node``; None
    unless both are constant and not blocked."""
    constants = Constants()
    scale = constants.get(node.inputs[inputs.scale], limit=None)
    zero_point = node.inputs[inputs.zero_point] if len(node.inputs) > inputs.zero_point else None
    zero = np.zeros(1, np.int64) if zero_point is None else constants.get(zero_point, limit=None)
    if scale is None or zero is None or "block_size" in node.attributes:
        return None
    scales = tuple(map(float, scale.reshape(-1)))
    zeros = tuple(map(int, np.broadcast_to(zero.reshape(-1), len(scales))))
    if len(scales) == 1:
        return Quantization(scales, zeros)
    if value.shape is None or scale.ndim != 1:
        return None
    axis = node.attributes.get_int("axis", 1) if inputs.axis is None else inputs.axis
    return Quantization(scales, zeros, axis % len(value.shape))
