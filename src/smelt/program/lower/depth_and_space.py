"""Lowers DepthToSpace and SpaceToDepth to Reshape, Transpose and Reshape."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.instruction import Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("DepthToSpace")
def depth_to_space(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Reshape, Transpose and Reshape that move blocks of channels into height and width.

    [N, C, H, W] becomes [N, C / b^2, H b, W b]. In mode DCR, the two blocks are the outer dims of
    the channels, else the inner ones.
    """
    block = node.attributes.get_int("blocksize", 1)
    batch, channels, height, width = cx.shape(cx.slot(node.inputs[0]))
    blocks: tuple[Dim, ...]
    if node.attributes.get_string("mode", "DCR") == "DCR":
        blocks, perm = (
            (batch, block, block, _div(cx, channels, block**2), height, width),
            (0, 3, 4, 1, 5, 2),
        )
    else:
        blocks, perm = (
            (batch, _div(cx, channels, block**2), block, block, height, width),
            (0, 1, 4, 2, 5, 3),
        )
    _transpose_blocks(cx, node, blocks, perm)


@lowers("SpaceToDepth")
def space_to_depth(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Reshape, Transpose and Reshape that move blocks of height and width into channels.

    [N, C, H, W] becomes [N, C b^2, H / b, W / b]. In mode DCR, the two blocks are the outer dims of
    the channels, else the inner ones.
    """
    block = node.attributes.get_int("blocksize", 1)
    batch, channels, height, width = cx.shape(cx.slot(node.inputs[0]))
    blocks = (batch, channels, _div(cx, height, block), block, _div(cx, width, block), block)
    depth_first = node.attributes.get_string("mode", "DCR") == "DCR"
    _transpose_blocks(cx, node, blocks, (0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4))


def _div(cx: ProgramBuilder, size: Dim, by: int) -> Dim:
    """Return ``size // by``; refuses a number that is no multiple of ``by``.

    If ``size`` is symbolic, a run with such a number aborts.
    """
    if by < 1 or (isinstance(size, int) and size % by):
        raise cx.refuse_size(f"size {size} does not divide into blocks of {by}")
    return size // by


def _transpose_blocks(
    cx: ProgramBuilder, node: ir.Node, blocks: tuple[Dim, ...], perm: tuple[int, ...]
) -> None:
    """Emit a Reshape of the input to ``blocks``, a Transpose by ``perm``, and a Reshape to the
    output."""
    split_up = cx.emit_new("Reshape", (cx.slot(node.inputs[0]),), blocks)
    transposed = cx.emit_new("Transpose", (split_up,), [blocks[i] for i in perm], perm=perm)
    cx.emit("Reshape", (transposed,), (cx.define(node.outputs[0]),))
