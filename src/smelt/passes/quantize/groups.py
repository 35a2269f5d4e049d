"""The quantized groups of a graph: DequantizeLinear ─> operator ─> QuantizeLinear.

Runtimes compute such a group as one operator on integers, and find it by its form: the operator
reads nothing but what was dequantized, and each result goes to a QuantizeLinear. ONNX Runtime
also takes products that are not quantized again, looks through operators that move elements, asks
those for zero points that are spelled out, and for equal types on both sides, and turns a
QuantizeLinear with its DequantizeLinear to the type that its kernels have
(onnxruntime/core/optimizer/qdq_transformer).
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import is_constant
from smelt.ir.index import NodeIndex

MOVERS = frozenset({"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
"""Operators past which ONNX Runtime moves a DequantizeLinear down and a QuantizeLinear up."""


@dataclass(frozen=True)
class Groups:
    """``keep_groups``: leave alone what runtimes may compute as one operator on integers."""

    keep_groups: bool = False


def has_groups(index: NodeIndex) -> bool:
    """False if nothing but constants is dequantized, and nothing is quantized."""
    return index.has("QuantizeLinear") or any(
        node.inputs[0] is not None and not is_constant(node.inputs[0])
        for node in index.nodes([("", "DequantizeLinear")])
    )


def is_integer_product(node: ir.Node) -> bool:
    """True for a MatMul or Gemm of dequantized operands: a group with or without quantization."""
    if node.op_type not in ("MatMul", "Gemm") or node.domain:
        return False
    return all(value is None or is_dequantized(value) for value in node.inputs)


def is_dequantized(value: ir.Value) -> bool:
    """True for a result of DequantizeLinear, perhaps moved."""
    node = value.producer()
    while node is not None and node.op_type in MOVERS and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node is not None and node.op_type == "DequantizeLinear" and not node.domain


def is_pair(quantize: ir.Node) -> bool:
    """True if a DequantizeLinear reads what ``quantize`` makes."""
    return any(
        reader.op_type == "DequantizeLinear" and not reader.domain
        for reader in scope.consumers(quantize.outputs[0])
    )
