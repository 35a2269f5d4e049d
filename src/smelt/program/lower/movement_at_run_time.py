"""Slice, Pad and Tile whose places, widths or repeats the data of a run tells."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.program.instruction import (
    PAD_AT_RUN_TIME,
    SLICE_AT_RUN_TIME,
    TILE_AT_RUN_TIME,
    AttributeValue,
)
from smelt.program.lower.builder import ABSENT, ProgramBuilder


def is_told_by_data(cx: ProgramBuilder, node: ir.Node, positions: Iterable[int]) -> bool:
    """True if elements of an input of the model decide one of these inputs of ``node``."""
    return any(cx.by_data(cx.input(node, position)) for position in positions)


def slice_at_run_time(cx: ProgramBuilder, node: ir.Node) -> None:
    """Inputs: data, starts, ends, axes and steps, the last two -1 where they are absent."""
    _emit(cx, node, SLICE_AT_RUN_TIME, [cx.input(node, i) for i in range(5)])


def pad_at_run_time(cx: ProgramBuilder, node: ir.Node) -> None:
    """Inputs: data, pads, value and axes, the last two -1 where they are absent."""
    mode = node.attributes.get_string("mode", "constant")
    _emit(cx, node, PAD_AT_RUN_TIME, [cx.input(node, i) for i in range(4)], mode=mode)


def tile_at_run_time(cx: ProgramBuilder, node: ir.Node) -> None:
    """Inputs: data and repeats, one number a dim."""
    _emit(cx, node, TILE_AT_RUN_TIME, [cx.input(node, i) for i in range(2)])


def _emit(
    cx: ProgramBuilder,
    node: ir.Node,
    op: str,
    inputs: Iterable[ir.Value | None],
    **attributes: AttributeValue,
) -> None:
    slots = [cx.slot(value) if value is not None and value.name else ABSENT for value in inputs]
    for slot in slots[1:]:
        if slot != ABSENT and not all(isinstance(size, int) for size in cx.shape(slot)):
            raise cx.refuse_size("how many axes there are is decided while the model runs")
    output = node.outputs[0]
    output.shape = ir.Shape(
        [
            ir.SymbolicDim(f"_run{len(cx.program.slots)}_{axis}") if _is_unknown(dim) else dim
            for axis, dim in enumerate(output.shape.dims if output.shape is not None else ())
        ]
    )
    if len(output.shape) != len(cx.shape(slots[0])):
        raise cx.refuse("the rank of the result is not that of the data")
    cx.emit(op, slots, (cx.define(output),), **attributes)


def _is_unknown(dim: int | ir.SymbolicDim) -> bool:
    return isinstance(dim, ir.SymbolicDim) and dim.value is None
