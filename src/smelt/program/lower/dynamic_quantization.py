"""DynamicQuantizeLinear: a data-dependent scale."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("DynamicQuantizeLinear")
def dynamic_quantize(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one instruction if the target has it; else refuse, and the function body is expanded."""
    if not cx.emit_if_supported(node):
        raise cx.refuse("the target has no instruction for it")
