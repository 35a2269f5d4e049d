"""Det: the determinant of each matrix."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("Det")
def det(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Det of the square matrices in the last two dims."""
    shape = cx.shape(cx.slot(node.inputs[0]))
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise cx.refuse("its matrices are not square")
    cx.keep(node)
