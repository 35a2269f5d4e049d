"""DynamicQuantizeLinear: a scale that hangs on the numbers."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("DynamicQuantizeLinear")
def dynamic_quantize(cx: ProgramBuilder, node: ir.Node) -> None:
    """One instruction where the target has it; its function body stands in elsewhere."""
    if not cx.kept_whole(node):
        raise cx.refuse("the target has no instruction for it")
