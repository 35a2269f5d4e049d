"""Pass quantized inputs and outputs as bytes.

    before   x: float ─> QuantizeLinear ─> ... ─> DequantizeLinear ─> y: float
    after    x: int8 ─> ...                                        ─> y: int8

A caller then needs a fourth of the memory for these tensors, and the model does not convert them.
An integer ``q`` stands for ``(q - zero_point) * scale``, as the C header states.

Needs    (1) a float input that only one QuantizeLinear reads, or an output of a DequantizeLinear;
         (2) constants with one scale and zero point; (3) integers of 8 or 16 bits.
Keeps    (1) names and all other inputs and outputs; (2) an input with a default; (3) integers that
         are an input or output already. The pass changes the interface, so it runs on request only.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.interface_change import PortChange, ports_of
from smelt.ir.quantization import Quantization, quantization_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

INTEGERS = (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16)
"""The element types that an input or output may get."""


@graph_pass("bytes_at_interface", __doc__, exactness=EXACT, default=False)
def bytes_at_interface(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Give quantized inputs and outputs the integer types in which the model computes."""
    graph = cx.model.graph
    for value in list(graph.inputs):
        if not rewriter.exhausted and _make_input_integer(graph, value, stats):
            rewriter.count += 1
    for value in list(dict.fromkeys(graph.outputs)):
        if not rewriter.exhausted and _make_output_integer(graph, value, stats):
            rewriter.count += 1
    if stats.fired:
        cx.forget_index()
        cx.shapes.redeclare_interface()


def _make_input_integer(graph: ir.Graph, value: ir.Value, stats: RuleStats) -> bool:
    """Remove the QuantizeLinear of an input, which then takes integers; False if it stays float."""
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output() or value.is_initializer():  # needs 1, keeps 2
        return False
    node = uses[0].node
    if (node.domain, node.op_type, uses[0].idx) != ("", "QuantizeLinear", 0):
        return False
    result = node.outputs[0]
    quantization, dtype = _quantization(result), result.dtype
    if (
        quantization is None or dtype is None or result.is_graph_output() or node.graph is not graph
    ):  # keeps 3
        return False
    _record_change(graph, value, dtype, quantization, stats)
    value.type, value.doc_string = ir.TensorType(dtype), _description(quantization)
    for use in list(result.uses()):
        use.node.replace_input_with(use.idx, value)
    graph.remove(node, safe=True)
    return True


def _make_output_integer(graph: ir.Graph, value: ir.Value, stats: RuleStats) -> bool:
    """Make the operand of the DequantizeLinear of an output the output; False if it stays float."""
    node = value.producer()
    if node is None or (node.domain, node.op_type) != ("", "DequantizeLinear"):  # needs 1
        return False
    source = node.inputs[0]
    if source is None or source.is_graph_input() or source.is_graph_output():  # keeps 3
        return False
    quantization = _quantization(source)
    producer = source.producer()
    if quantization is None or producer is None or producer.graph is not graph:
        return False
    _record_change(graph, value, source.dtype, quantization, stats)
    source.doc_string = _description(quantization)
    source.name, value.name = value.name, source.name  # keeps 1
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = source
    if not value.uses():
        graph.remove(node, safe=True)
    return True


def _quantization(value: ir.Value) -> Quantization | None:
    """Return the scale and zero point of ``value`` if it has one pair, in 8 or 16 bits, else None.

    A caller could not read integers with a pair for each channel by one formula.
    """
    if value.dtype not in INTEGERS:  # needs 3
        return None
    found = quantization_of(value)
    return found if found is not None and len(found.scale) == 1 else None  # needs 2


def _description(quantization: Quantization) -> str:
    """Return the formula of an input's or output's numbers; the C header states it."""
    return f"q stands for (q - {quantization.zero_point[0]}) * {quantization.scale[0]:.9g}"


def _record_change(
    graph: ir.Graph,
    value: ir.Value,
    dtype: ir.DataType | None,
    quantization: Quantization,
    stats: RuleStats,
) -> None:
    """Record that ``value`` will hold integers of ``dtype``."""
    step = (quantization.scale[0], quantization.zero_point[0])
    stats.interface += [
        PortChange(*port, dtype=dtype, step=step) for port in ports_of(graph, value)
    ]
    stats.fired["input" if value.is_graph_input() else "output"] += 1
