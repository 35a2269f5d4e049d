"""Find the quantized nodes and weights of a model, with their format and bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import tensor_of

Format = Literal["QDQ", "QLinear", "dynamic", "weight-only"]

DYNAMIC = frozenset(
    {"MatMulInteger", "ConvInteger", "DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
)
WEIGHT_ONLY = frozenset({"MatMulNBits", "MatMulBnb4", "MatMulFpQ4", "GatherBlockQuantized"})
"""Quantized operators of ONNX and ONNX Runtime, by name: those that compute scales at run time
(``DYNAMIC``), and those that dequantize a weight and compute in floats (``WEIGHT_ONLY``)."""

PASSED_ON = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast"})
"""Operators that may stand between a DequantizeLinear and its consumer."""


@dataclass(frozen=True)
class QuantizedNode:
    """A node that computes with quantized values; ``bits`` are those of its weight, else of its
    input.

    ``QDQ``: float operators between DequantizeLinear and QuantizeLinear. ``QLinear``: integer
    operators with scales. ``dynamic``: scales are computed at run time. ``weight-only``: a constant
    is dequantized and the computation is in floats.
    """

    node: ir.Node
    format: Format
    bits: int | None


def quantized_nodes(model: ir.Model) -> list[QuantizedNode]:
    """Return the nodes of all graphs that compute with quantized values, in order."""
    nodes = []
    for node in scope.nodes(model):
        known_format = _by_name(node)
        if known_format is not None:
            nodes.append(QuantizedNode(node, known_format, _bits_of(node.inputs)))
        elif not node.domain and node.op_type not in ("QuantizeLinear", *PASSED_ON):
            described = _on_dequantized(node)
            if described is not None:
                nodes.append(described)
    return nodes


def quantized_weights(model: ir.Model) -> list[tuple[ir.Value, int]]:
    """Return the constants that DequantizeLinear or quantized operators read as data, with their
    bits.
    """
    weights: dict[ir.Value, int] = {}
    for node in scope.nodes(model):
        if node.op_type == "DequantizeLinear":
            data = node.inputs[:1]
        elif _by_name(node) is not None:
            data = node.inputs
        else:
            continue
        for value in data:
            if value is not None and tensor_of(value) is not None and _is_data(value):
                bits = _bits_of([value])
                if bits is not None:
                    weights.setdefault(value, bits)
    return list(weights.items())


def bits_counted(nodes: list[QuantizedNode]) -> dict[str, int]:
    """Return the number of nodes for each format and bits, such as ``QDQ, 8 bits``."""
    counts = Counter(f"{item.format}, {item.bits or '?'} bits" for item in nodes)
    return dict(counts.most_common())


def _is_data(value: ir.Value) -> bool:
    """True for a value of rank 2 or more; zero points and scales have rank 0 or 1."""
    return value.shape is not None and len(value.shape) > 1


def _by_name(node: ir.Node) -> Format | None:
    """Return the format of an operator that is quantized by definition, None for other
    operators.
    """
    if node.op_type.startswith("QLinear"):
        return "QLinear"
    if node.op_type in DYNAMIC:
        return "dynamic"
    return "weight-only" if node.op_type in WEIGHT_ONLY else None


def _on_dequantized(node: ir.Node) -> QuantizedNode | None:
    """Return ``node`` as a QuantizedNode if it reads dequantized values, else None."""
    if node.op_type == "DequantizeLinear" or not node.inputs:
        return None
    sources = [_dequantized(value) for value in node.inputs if value is not None]
    quantized = [source for source in sources if source is not None]
    if not quantized:
        return None
    constants = [s for s in quantized if s.inputs[0] is not None and tensor_of(s.inputs[0])]
    bits = _bits_of([s.inputs[0] for s in constants or quantized])
    weight_only = len(constants) == len(quantized)
    return QuantizedNode(node, "weight-only" if weight_only else "QDQ", bits)


def _dequantized(value: ir.Value) -> ir.Node | None:
    """Return the DequantizeLinear behind ``value``, through nodes that only move data;
    else None.
    """
    node = value.producer()
    while node is not None and not node.domain and node.op_type in PASSED_ON and node.inputs:
        first = node.inputs[0]
        node = first.producer() if first is not None else None
    return node if node is not None and node.op_type == "DequantizeLinear" else None


def _bits_of(values: Sequence[ir.Value | None]) -> int | None:
    """Return the smallest width in bits of the integers or small floats among ``values``.

    None if there are none. Floats of 8 bits or fewer and integers of 16 or fewer count.
    """
    widths = [
        value.dtype.bitwidth
        for value in values
        if value is not None
        and value.dtype is not None
        and value.dtype != ir.DataType.STRING
        and (value.dtype.is_integer() or value.dtype.bitwidth <= 8)
        and value.dtype.bitwidth <= 16
        and value.dtype != ir.DataType.BOOL
    ]
    return min(widths, default=None)
