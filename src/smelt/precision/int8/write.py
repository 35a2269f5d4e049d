"""Write a plan into a model: QuantizeLinear and DequantizeLinear, integer weights and biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.approximation import note_approximation
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import detach, optional_input
from smelt.precision.int8.bias import Means, corrected_bias
from smelt.precision.int8.candidates import (
    Weight,
    is_plain_gemm,
    operand_array,
    operand_name,
    result_name,
    weight_of,
)
from smelt.precision.int8.linear import Codes, Parameters
from smelt.precision.int8.plan import Plan
from smelt.precision.int8.tables import tied_tables
from smelt.precision.int8.writer import BIAS_LIMIT, Format, Writer


def write_plan(
    model: ir.Model,
    plan: Plan,
    parameters: Mapping[str, Parameters],
    format_: Format,
    given: Mapping[str, Codes],
    means: Means | None = None,
) -> None:
    """Quantize ``model`` in place as ``plan`` says, and drop weights and nodes that become unused.

    ``given`` are codes of weights; see ``Writer``. ``means`` correct biases; see ``bias.py``. The
    opset must be at least 13, with blocks 21.
    """
    nodes = [node for node in model.graph if result_name(node) in plan.forms]
    tied = tied_tables(nodes, Constants(), format_.block)
    writer = Writer(model, parameters, format_, given, tied)
    for node in nodes:
        weight = weight_of(node, writer.constants)
        assert isinstance(weight, Weight)
        form = plan.forms[result_name(node)]
        if form == "dynamic":
            _write_dynamic(writer, node, weight)
            continue
        source = operand_name(node)
        codes = writer.codes_of(node, weight, form, source)
        b, stem = writer.before(node), str(weight.value.name)
        if node.op_type == "Gather":
            replace_value(model, node.outputs[0], writer.dequantized_rows(b, node, codes, stem))
            continue
        if means and result_name(node) in means:
            _correct_bias(writer, b, node, weight, codes, means[result_name(node)])
        if codes.block and node.op_type == "Gemm" and is_plain_gemm(node):
            _write_matmul(writer, b, node, codes)
            continue
        node.replace_input_with(1, writer.dequantized(b, codes, stem))
        if form == "static":
            _write_bias(writer, b, node, codes)
    _write_activations(writer, plan, nodes)
    drop_unused(model)
    note_approximation(model, f"{len(nodes)} products in {format_.weights}")


def _write_activations(writer: Writer, plan: Plan, nodes: list[ir.Node]) -> None:
    """Insert QuantizeLinear and DequantizeLinear after the activations of ``plan``.

    All readers of a result read this rounded copy; of an operand, only static products read it.
    Operands come first: a result that the model returns gives its name to its rounded copy.
    """
    for name in sorted(plan.operands - plan.results):
        value = writer.values[name]
        readers = [
            use.node
            for use in value.uses()
            if use.idx == 0 and plan.forms.get(result_name(use.node)) == "static"
        ]
        b = writer.after(value)
        rounded = writer.round_trip(b, value, name)
        for node in readers:
            node.replace_input_with(0, rounded)
    for name in plan.results:
        value = writer.values[name]
        uses = list(value.uses())
        b = writer.after(value)
        rounded = writer.round_trip(b, value, plan.scale_of.get(name, name))
        for use in uses:
            use.node.replace_input_with(use.idx, rounded)
        _move_outputs(writer.model, value, rounded)


def _correct_bias(
    writer: Writer, b: Builder, node: ir.Node, weight: Weight, codes: Codes, mean: np.ndarray
) -> None:
    """Move the mean error of the codes of ``node`` into its bias."""
    array = operand_array(weight, writer.constants)
    corrected = corrected_bias(node, array, codes, mean, writer.constants)
    if corrected is not None:
        name = b.free_name(f"{operand_name(node, 2)}_corrected")
        node.replace_input_with(2, b.constant(corrected, name=name))


def _write_bias(writer: Writer, b: Builder, node: ir.Node, codes: Codes) -> None:
    """Store a constant bias of ``node`` as int32 codes, if all of them are within ``BIAS_LIMIT``.

    Its scale is activation scale * weight scale, that of the integer sums, so that integer kernels
    can add it.
    """
    bias = writer.constants.get(optional_input(node, 2), None)
    if bias is None or node.op_type not in ("Conv", "Gemm") or bias.ndim != 1:
        return
    scale = (codes.scale * writer.parameters[operand_name(node)].scale).astype(np.float32)
    if scale.shape not in ((), bias.shape) or not np.isfinite(bias).all() or not (scale > 0).all():
        return
    stored = np.rint(bias / scale.astype(np.float64))
    if np.abs(stored).max(initial=0) > BIAS_LIMIT:
        return  # per tensor, the bias of a channel of zeros does not raise the scale
    stem = operand_name(node, 2)
    made = Codes(stored.astype(np.int32), scale, 0)
    node.replace_input_with(2, writer.dequantized(b, made, stem))


def _write_matmul(writer: Writer, b: Builder, node: ir.Node, codes: Codes) -> None:
    """Replace a Gemm by MatMul and Add: only to a MatMul does ONNX Runtime apply blocks of int4.

    Before a Gemm, it turns the weight into floats in each run; and it fuses MatMul and Add to a
    Gemm again if the summand is a matrix, so that a constant row becomes a vector.
    """
    if node.attributes.get_int("transB", 0):
        codes = replace(codes, axis=0, is_transposed=True)
    stem = operand_name(node, 1)
    result = b.op("MatMul", node.inputs[0], writer.dequantized(b, codes, stem))
    bias = optional_input(node, 2)
    array = writer.constants.get(bias, None)
    if array is not None and array.ndim == 2 and len(array) == 1:
        bias = b.constant(array.reshape(-1), name=b.free_name(f"{stem}_bias"))
    if bias is not None:
        result = b.op("Add", result, bias)
    replace_value(writer.model, node.outputs[0], result)


def _write_dynamic(writer: Writer, node: ir.Node, weight: Weight) -> None:
    """Replace a product by DynamicQuantizeLinear of its operand and MatMulInteger.

    The result is ``MatMulInteger(codes, weights) * (operand scale * weight scales) + bias``, where
    codes and operand scale come from the range of the operand in each run.
    """
    codes = writer.codes_of(node, weight, "dynamic", "")
    b, stem = writer.before(node), str(weight.value.name)
    if codes.axis == 0 and weight.value in writer.tied:
        codes = replace(codes, axis=1, is_transposed=True)
    elif codes.axis == 0:
        codes = replace(codes, axis=1, codes=np.ascontiguousarray(codes.codes.T))
    quantized, scale, zero = b.ops("DynamicQuantizeLinear", node.inputs[0], outputs=3)
    stored = writer.stored_codes(b, codes, stem)
    scales = writer.constant(codes.scale, f"{stem}_scale")
    sums = b.cast(b.op("MatMulInteger", quantized, stored, zero), ir.DataType.FLOAT)
    result = b.op("Mul", sums, b.op("Mul", scale, scales))
    bias = optional_input(node, 2)
    if bias is not None:
        result = b.op("Add", result, bias)
    replace_value(writer.model, node.outputs[0], result)


def replace_value(model: ir.Model, old: ir.Value, new: ir.Value) -> None:
    """Let all readers of ``old`` read ``new``; if ``old`` is an output, ``new`` takes its place."""
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, new)
    _move_outputs(model, old, new)


def _move_outputs(model: ir.Model, old: ir.Value, new: ir.Value) -> None:
    """Let the model return ``new`` instead of ``old``, under the same output name."""
    outputs = model.graph.outputs
    if not old.is_graph_output():
        return
    name, old.name = old.name, f"{old.name}_float"
    new.name = name
    for index, value in enumerate(outputs):
        if value is old:
            outputs[index] = new


def drop_unused(model: ir.Model) -> None:
    """Remove nodes and initializers of the main graph that nothing reads."""
    for node in reversed(list(model.graph)):
        if all(scope.is_dead(value) for value in node.outputs):
            detach(node)
            model.graph.remove(node)
    for name, value in list(model.graph.initializers.items()):
        if not value.is_graph_input() and scope.is_dead(value):
            del model.graph.initializers[name]
