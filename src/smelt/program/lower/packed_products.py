"""MatMulNBits of ONNX Runtime: a product with packed weights of a few bits."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("com.microsoft::MatMulNBits")
def product_of_few_bits(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one instruction if the target reads packed weights; else refuse, and the body is
    expanded."""
    numbers = {
        name: node.attributes.get_int(name, default)
        for name, default in (("K", 0), ("N", 0), ("bits", 4), ("block_size", 0))
    }
    prepacked = node.attributes.get_int("weight_prepacked", 0)
    if prepacked or not cx.emit_if_supported(node, **numbers):
        raise cx.refuse("the target has no instruction for it")
