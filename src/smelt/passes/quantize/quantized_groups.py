"""Recognize quantized groups: DequantizeLinear ─> operator ─> QuantizeLinear.

Runtimes compute such a group as one operator on integers. They find it by its form: all operands
are dequantized, and each result goes to a QuantizeLinear. ONNX Runtime also accepts products
without a QuantizeLinear, and looks through operators that move elements. It requires explicit zero
points and equal types on both sides, and changes a QuantizeLinear with its DequantizeLinear to the
type of its kernels (onnxruntime/core/optimizer/qdq_transformer).
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
    """``keep_groups``: do not change groups that runtimes may compute as one integer operator."""

    keep_groups: bool = False


def has_groups(index: NodeIndex) -> bool:
    """True if the model may have a quantized group.

    It has none if nothing is quantized and only constants are dequantized.
    """
    return index.has("QuantizeLinear") or any(
        node.inputs[0] is not None and not is_constant(node.inputs[0])
        for node in index.nodes([("", "DequantizeLinear")])
    )


def is_integer_product(node: ir.Node) -> bool:
    """True for a MatMul or Gemm of dequantized operands, whether its result is quantized or not."""
    if node.op_type not in ("MatMul", "Gemm") or node.domain:
        return False
    return all(value is None or is_dequantized(value) for value in node.inputs)


def is_dequantized(value: ir.Value) -> bool:
    """True for a result of DequantizeLinear, also behind operators that move elements."""
    node = value.producer()
    while node is not None and node.op_type in MOVERS and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node is not None and node.op_type == "DequantizeLinear" and not node.domain


def is_pair(quantize: ir.Node) -> bool:
    """True if a DequantizeLinear reads the result of ``quantize``."""
    return any(
        reader.op_type == "DequantizeLinear" and not reader.domain
        for reader in scope.consumers(quantize.outputs[0])
    )
