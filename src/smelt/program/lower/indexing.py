"""Lowers operators that read or write by index, and operators that produce indices."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.instruction import DYNAMIC_RANGE
from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import data_dependent_size
from smelt.program.lower.registry import lowers


def _rank(cx: ProgramBuilder, node: ir.Node) -> int:
    """Return the rank of the first input."""
    return cx.rank(node.inputs[0])


@lowers("Gather", "GatherElements")
def gather(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the gather with ``axis`` >= 0; indices may be negative."""
    cx.keep(node, axis=cx.axis(node.attributes.get_int("axis", 0), _rank(cx, node)))


@lowers("GatherND")
def gather_nd(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit GatherND: the last dim of the indices addresses the dims after ``batch_dims``."""
    cx.keep(node, batch_dims=node.attributes.get_int("batch_dims", 0))


_REDUCTIONS = ("none", "add", "mul", "max", "min")


def _reduction(cx: ProgramBuilder, node: ir.Node) -> str:
    """Return the attribute ``reduction`` of a scatter; refuses values that ONNX does not define."""
    reduction = node.attributes.get_string("reduction", "none")
    if reduction not in _REDUCTIONS:
        raise cx.refuse(f"reduction={reduction!r}, not one of {', '.join(_REDUCTIONS)}")
    return reduction


@lowers("ScatterElements")
def scatter_elements(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a copy of the data with some elements replaced, or combined by ``reduction``."""
    axis = cx.axis(node.attributes.get_int("axis", 0), _rank(cx, node))
    cx.keep(node, axis=axis, reduction=_reduction(cx, node))


@lowers("ScatterND")
def scatter_nd(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a copy of the data with some slices replaced, or combined by ``reduction``."""
    cx.keep(node, reduction=_reduction(cx, node))


@lowers("Range")
def range_(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``start + i * delta`` for each index i of the output slot."""
    start, limit, delta = cx.inputs(node)
    output = cx.define(node.outputs[0])
    if any(map(cx.by_data, node.inputs)):
        cx.emit(DYNAMIC_RANGE, (start, delta, limit), (output,))
    else:
        cx.emit("Range", (start, delta), (output,))


@lowers("Trilu")
def trilu(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Trilu with attribute ``k``; ``upper`` keeps elements on and above that diagonal."""
    if cx.by_data(cx.input(node, 1)):
        _emit_dynamic_trilu(cx, node)
        return
    diagonal = cx.ints(node, "k", 1)
    inputs, outputs = (cx.slot(node.inputs[0]),), (cx.define(node.outputs[0]),)
    cx.emit(
        "Trilu",
        inputs,
        outputs,
        k=diagonal[0] if diagonal else 0,
        upper=node.attributes.get_int("upper", 1),
    )


def _emit_dynamic_trilu(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Trilu whose diagonal is computed in the run, as a Where by row and column numbers."""
    m = Steps(cx)
    x, diagonal = m.array(node.inputs[0]), m.array(node.inputs[1]).reshape()
    rows, columns = x.shape[-2:]
    offset = m.numbers(columns) - m.numbers(rows).reshape(rows, 1)
    is_kept = offset >= diagonal if node.attributes.get_int("upper", 1) else offset <= diagonal
    m.set_output(node.outputs[0], m.op("Where", is_kept, x, 0))


@lowers("OneHot")
def one_hot(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit OneHot of the indices and the pair (off, on); the depth is the size of the output."""
    if cx.by_data(cx.input(node, 1)):
        _emit_dynamic_one_hot(cx, node)
        return
    indices, _, values = cx.inputs(node)
    output = cx.define(node.outputs[0])
    axis = cx.axis(node.attributes.get_int("axis", -1), len(cx.shape(output)))
    cx.emit("OneHot", (indices, values), (output,), axis=axis)


def _emit_dynamic_one_hot(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a OneHot whose depth is computed in the run: each index is compared with all numbers
    below the depth.
    """
    m, integers = Steps(cx), ir.DataType.INT64
    indices, depth, values = (m.array(value) for value in node.inputs)
    rank = len(indices.shape) + 1
    axis = cx.axis(node.attributes.get_int("axis", -1), rank)
    depth_number, positions = depth.reshape().cast(integers), indices.cast(integers)
    numbers = m.numbers_below(
        depth_number, data_dependent_size(cx, node.outputs[0], axis), node.outputs[0]
    )
    positions = m.op("Where", positions < 0, positions + depth_number, positions)
    positions = positions.reshape(*indices.shape[:axis], 1, *indices.shape[axis:])
    is_on = m.op("Equal", positions, numbers.reshape(numbers.shape[0], *[1] * (rank - 1 - axis)))
    off_value, on_value = (values.rows(i, i + 1, 0).reshape() for i in range(2))
    m.set_output(node.outputs[0], m.op("Where", is_on, on_value, off_value))
