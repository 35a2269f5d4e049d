"""Lowers reductions, with ``axes`` sorted and non-negative."""

from __future__ import annotations

import onnx_ir as ir

from smelt.program.instruction import DYNAMIC_CUMULATIVE, DYNAMIC_REDUCE
from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

REDUCTIONS = [
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
]

NARROW = frozenset(
    {
        *(ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32),
        *(ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32),
    }
)
"""Integers whose mean fits where their sum may overflow: they are summed in 64 bits."""

IDENTITY_WITHOUT_AXES = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
"""Reductions that return their operand if they reduce no axis; others apply a root or logarithm."""


@lowers(*REDUCTIONS)
def reduce(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the reduction with attributes ``axes`` and ``keepdims``; absent axes mean all."""
    rank = cx.rank(node.inputs[0])
    axes_input = cx.input(node, 1)
    if axes_input is not None and cx.constants.ints(axes_input) is None:
        _emit_dynamic_reduce(cx, node)
        return
    axes = cx.ints(node, "axes", 1)
    if not axes and node.attributes.get_int("noop_with_empty_axes", 0) != 0:
        if node.op_type not in IDENTITY_WITHOUT_AXES:
            raise cx.refuse(
                "it uses noop_with_empty_axes, which versions of ONNX define differently"
            )
        cx.alias(node.outputs[0], cx.slot(node.inputs[0]))
        return
    sorted_axes = tuple(sorted(cx.axes(axes or range(rank), rank)))
    _reduce(cx, node, node.op_type, sorted_axes, node.attributes.get_int("keepdims", 1))


def _reduce(
    cx: ProgramBuilder, node: ir.Node, op: str, axes: tuple[int, ...], keepdims: int
) -> None:
    """Emit the reduction ``op``; a mean of narrow integers is computed in 64 bits."""
    source = cx.slot(node.inputs[0])
    if op == "ReduceMean" and cx.dtype(source) in NARROW:
        m = Steps(cx)
        widened = m.array(source).cast(ir.DataType.INT64)
        mean = widened.reduce(op, *axes, keep=bool(keepdims))
        m.set_output(node.outputs[0], mean.cast(cx.dtype(source)))
        return
    cx.emit(op, (source,), (cx.define(node.outputs[0]),), axes=axes, keepdims=keepdims)


def _emit_dynamic_reduce(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a reduction whose axes are an operand, of which only the number is known here."""
    noop = node.attributes.get_int("noop_with_empty_axes", 0)
    inputs = cx.inputs(node)
    (count,) = cx.shape(inputs[1])
    if not isinstance(count, int):
        raise cx.refuse_size("the number of axes is computed while the model runs")
    if noop and count == 0 and node.op_type not in IDENTITY_WITHOUT_AXES:
        raise cx.refuse("it uses noop_with_empty_axes, which versions of ONNX define differently")
    keep = node.attributes.get_int("keepdims", 1)
    output = cx.define(node.outputs[0])
    attributes: dict[str, int | str] = {"reduction": node.op_type, "keepdims": keep, "noop": noop}
    type_ = cx.dtype(inputs[0])
    if node.op_type != "ReduceMean" or type_ not in NARROW:
        cx.emit(DYNAMIC_REDUCE, inputs, (output,), **attributes)
        return
    widened = Steps(cx).array(inputs[0]).cast(ir.DataType.INT64).slot
    mean = cx.new(ir.DataType.INT64, cx.shape(output), "mean")
    cx.emit(DYNAMIC_REDUCE, (widened, *inputs[1:]), (mean,), **attributes)
    cx.emit("Cast", (mean,), (output,), dtype=type_, saturate=1)


@lowers("GlobalAveragePool", "GlobalMaxPool")
def global_pool(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a reduction over the spatial dims."""
    op = "ReduceMean" if node.op_type == "GlobalAveragePool" else "ReduceMax"
    _reduce(cx, node, op, tuple(range(2, cx.rank(node.inputs[0]))), 1)


@lowers("GlobalLpPool")
def global_norm(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the ``p``-norm of each channel: a reduction for p = 1 and 2, else a sum of powers."""
    source, p = node.inputs[0], node.attributes.get_int("p", 2)
    assert source is not None
    spatial = tuple(range(2, cx.rank(source)))
    if p in (1, 2):
        _reduce(cx, node, f"ReduceL{p}", spatial, 1)
        return
    m = Steps(cx)
    powers = m.op("Pow", m.op("Abs", m.array(source)), p)
    total = powers.reduce("ReduceSum", *spatial, keep=True)
    m.set_output(node.outputs[0], m.op("Pow", total, 1 / p))


@lowers("ArgMax", "ArgMin")
def arg_reduce(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the operator with attributes ``axis``, ``keepdims`` and ``select_last_index``."""
    cx.keep(
        node,
        axis=cx.axis(node.attributes.get_int("axis", 0), cx.rank(node.inputs[0])),
        keepdims=node.attributes.get_int("keepdims", 1),
        select_last_index=node.attributes.get_int("select_last_index", 0),
    )


@lowers("CumSum", "CumProd")
def cumulative_sum(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the running sum or product; ``axis`` is a second input if it is data-dependent."""
    options = {name: node.attributes.get_int(name, 0) for name in ("exclusive", "reverse")}
    inputs: tuple[int, ...] = (cx.slot(node.inputs[0]),)
    if cx.by_data(cx.input(node, 1)):
        inputs = (*inputs, cx.slot(node.inputs[1]))
        outputs = (cx.define(node.outputs[0]),)
        cx.emit(DYNAMIC_CUMULATIVE, inputs, outputs, running=node.op_type, **options)
        return
    axis = cx.ints(node, "axis", 1)
    if axis is None:
        raise cx.refuse("the axis is missing")
    position = cx.axis(axis[0], cx.rank(node.inputs[0]))
    cx.emit(node.op_type, inputs, (cx.define(node.outputs[0]),), axis=position, **options)
