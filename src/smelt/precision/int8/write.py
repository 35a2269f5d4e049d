"""Write a plan into a model: QuantizeLinear and DequantizeLinear, integer weights and biases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.approximation import note_approximation
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import detach, optional_input
from smelt.ir.shapes.inference import ShapeInference
from smelt.precision.int8.candidates import Weight, operand_array, result_name, weight_of
from smelt.precision.int8.linear import Codes, Parameters, int4_blocks, weight_codes
from smelt.precision.int8.plan import Plan
from smelt.precision.int8.tables import has_whole_blocks, two_codes_a_byte, unpacked_rows

BIAS_LIMIT = float(1 << 30)
"""The largest code of a bias; scales of weights grow until all codes are within it."""


@dataclass(frozen=True)
class Format:
    """How numbers are stored.

    ``signed``: activations are int8, not uint8. ``weight_bits`` is 7 for CPUs that saturate sums of
    uint8 times int8 products. ``block`` is the block of int4 weights, 0 for int8 weights.
    ``per_tensor``: an int8 weight has one scale.
    """

    signed: bool = False
    weight_bits: int = 8
    block: int = 0
    per_tensor: bool = False


@dataclass
class Writer:
    """Adds the nodes of quantization to the main graph of ``model``.

    ``parameters`` has scale and zero point of activations by value name.
    ``given`` has codes of weights that are not the nearest, by the result of their product.
    """

    model: ir.Model
    parameters: Mapping[str, Parameters]
    format: Format
    given: Mapping[str, Codes] = field(default_factory=dict)
    constants: Constants = field(default_factory=Constants)
    values: dict[str, ir.Value] = field(init=False)
    _shapes: ShapeInference = field(init=False)
    _next: dict[ir.Node, ir.Node | None] = field(init=False)
    _made: dict[tuple[object, ...], Codes] = field(default_factory=dict)
    _stored: dict[int, tuple[np.ndarray, ir.Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Store the values by name, and the successor of each node while there are no new nodes."""
        nodes = list(self.model.graph)
        self._shapes = ShapeInference(self.model)
        self._next = dict(zip(nodes, [*nodes[1:], None], strict=True))
        self.values = {str(value.name): value for value in self.model.graph.inputs}
        self.values |= {str(value.name): value for node in nodes for value in node.outputs}

    def before(self, node: ir.Node | None) -> Builder:
        """Return a builder that places nodes before ``node``, or at the end."""
        return Builder(self.model, self.model.graph, self._shapes, before=node)

    def after(self, value: ir.Value) -> Builder:
        """Return a builder that places nodes after the producer of ``value``."""
        producer = value.producer()
        if producer is None:
            return self.before(next(iter(self.model.graph), None))
        return self.before(self._next[producer])

    def constant(self, array: np.ndarray, stem: str) -> ir.Value:
        """Return an initializer of the main graph that holds ``array``; equal arrays are shared."""
        if id(array) not in self._stored:
            outer = self.before(None)
            self._stored[id(array)] = array, outer.constant(array, name=outer.free_name(stem))
        return self._stored[id(array)][1]

    def round_trip(self, b: Builder, value: ir.Value, name: str) -> ir.Value:
        """Return ``value`` quantized and dequantized with the parameters of the value ``name``."""
        parameters = self.parameters[name]
        scale = self.constant(parameters.scale, f"{name}_scale")
        zero = self.constant(parameters.zero_point, f"{name}_zero_point")
        codes = b.op("QuantizeLinear", value, scale, zero)
        return b.op("DequantizeLinear", codes, scale, zero)

    def codes_of(self, node: ir.Node, weight: Weight, form: str, source: str) -> Codes:
        """Return the codes of the weight of ``node`` in ``form``; nodes with one weight share them.

        ``source`` is the name of the activation. In the static form, its scale and the bias set a
        lower bound of the weight scales, see ``_least_scale``.
        """
        least = self._least_scale(node, source) if form == "static" else None
        block = self.format.block if form == "weights" and weight.inner >= 0 else 0
        if block and result_name(node) in self.given:
            return self.given[result_name(node)]
        if node.op_type == "Gather" and not has_whole_blocks(node, weight, block):
            block = 0
        bits = self.format.weight_bits if form != "weights" else 8
        key = (weight.value, weight.transposed, weight.axis, bits, block)
        if least is None and key in self._made:
            return self._made[key]
        array = operand_array(weight, self.constants)
        if block:
            made = int4_blocks(array, weight.inner, block)
        else:
            made = weight_codes(
                array, weight.axis, bits=bits, least=least, per_tensor=self.format.per_tensor
            )
        if least is None:
            self._made[key] = made
        return made

    def dequantized(self, b: Builder, codes: Codes, stem: str) -> ir.Value:
        """Return a weight as a DequantizeLinear of its codes; names begin with ``stem``."""
        stored = self.constant(codes.codes, f"{stem}_codes")
        scale = self.constant(codes.scale, f"{stem}_scale")
        block, axis = codes.block or None, codes.axis if codes.scale.ndim else None
        return b.op("DequantizeLinear", stored, scale, axis=axis, block_size=block)

    def dequantized_rows(self, b: Builder, node: ir.Node, codes: Codes, stem: str) -> ir.Value:
        """Return the rows that the Gather ``node`` reads, from codes with scales.

        The scales are of a row, of the table or of a block. Codes of 4 bits stand two in a byte.
        """
        if codes.block:
            stored = self.constant(two_codes_a_byte(codes), f"{stem}_codes")
            scale = self.constant(codes.scale, f"{stem}_scale")
            return unpacked_rows(b, stored, node.inputs[1], scale, codes.block)
        rows = b.op("Gather", self.constant(codes.codes, f"{stem}_codes"), node.inputs[1])
        if not codes.scale.ndim:
            scale = self.constant(codes.scale, f"{stem}_scale")
            return b.op("Mul", b.cast(rows, ir.DataType.FLOAT), scale)
        column = codes.scale.reshape(-1, 1)
        scales = b.op("Gather", self.constant(column, f"{stem}_scale"), node.inputs[1])
        return b.op("Mul", b.cast(rows, ir.DataType.FLOAT), scales)

    def _least_scale(self, node: ir.Node, source: str) -> np.ndarray | None:
        """Return the least weight scales with which the bias of ``node`` fits int32; None without.

        The codes of a bias are ``bias / (activation scale * weight scale)``, so a weight scale is
        at least ``|bias| / (activation scale * BIAS_LIMIT)``.
        """
        bias = self.constants.get(optional_input(node, 2), None)
        if bias is None or node.op_type not in ("Conv", "Gemm") or bias.ndim != 1:
            return None
        scale = self.parameters[source].scale
        return np.asarray(np.abs(bias) / (scale * BIAS_LIMIT))


def write_plan(
    model: ir.Model,
    plan: Plan,
    parameters: Mapping[str, Parameters],
    format_: Format,
    given: Mapping[str, Codes],
) -> None:
    """Quantize ``model`` in place as ``plan`` says, and drop weights and nodes that become unused.

    ``given`` are codes of weights; see ``Writer``. The opset must be at least 13, with blocks 21.
    """
    writer = Writer(model, parameters, format_, given)
    nodes = [node for node in model.graph if result_name(node) in plan.forms]
    for node in nodes:
        weight = weight_of(node, writer.constants)
        assert isinstance(weight, Weight)
        form = plan.forms[result_name(node)]
        if form == "dynamic":
            _write_dynamic(writer, node, weight)
            continue
        source = str(node.inputs[0].name)  # type: ignore[union-attr]
        codes = writer.codes_of(node, weight, form, source)
        b, stem = writer.before(node), str(weight.value.name)
        if node.op_type == "Gather":
            _replace(model, node.outputs[0], writer.dequantized_rows(b, node, codes, stem))
            continue
        node.replace_input_with(1, writer.dequantized(b, codes, stem))
        if form == "static":
            _write_bias(writer, b, node, codes)
    _write_activations(writer, plan, nodes)
    drop_unused(model)
    note_approximation(model, f"{len(nodes)} products in int{4 if format_.block else 8}")


def _write_activations(writer: Writer, plan: Plan, nodes: list[ir.Node]) -> None:
    """Insert QuantizeLinear and DequantizeLinear after the activations of ``plan``.

    All readers of a result read this rounded copy; of an operand, only static products read it.
    """
    for name in plan.results:
        value = writer.values[name]
        uses = list(value.uses())
        b = writer.after(value)
        rounded = writer.round_trip(b, value, plan.scale_of.get(name, name))
        for use in uses:
            use.node.replace_input_with(use.idx, rounded)
        _move_outputs(writer.model, value, rounded)
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


def _write_bias(writer: Writer, b: Builder, node: ir.Node, codes: Codes) -> None:
    """Store a constant bias of ``node`` as int32 codes, if all of them are within ``BIAS_LIMIT``.

    Its scale is activation scale * weight scale, that of the integer sums, so that integer kernels
    can add it.
    """
    bias = writer.constants.get(optional_input(node, 2), None)
    if bias is None or node.op_type not in ("Conv", "Gemm") or bias.ndim != 1:
        return
    name = str(node.inputs[0].name)  # type: ignore[union-attr]
    scale = (codes.scale * writer.parameters[name].scale).astype(np.float32)
    if scale.shape not in ((), bias.shape) or not np.isfinite(bias).all() or not (scale > 0).all():
        return
    stored = np.rint(bias / scale.astype(np.float64))
    if np.abs(stored).max(initial=0) > BIAS_LIMIT:
        return  # per tensor, the bias of a channel of zeros does not raise the scale
    stem = str(node.inputs[2].name)  # type: ignore[union-attr]
    made = Codes(stored.astype(np.int32), scale, 0)
    node.replace_input_with(2, writer.dequantized(b, made, stem))


def _write_dynamic(writer: Writer, node: ir.Node, weight: Weight) -> None:
    """Replace a product by DynamicQuantizeLinear of its operand and MatMulInteger.

    The result is ``MatMulInteger(codes, weights) * (operand scale * weight scales) + bias``, where
    codes and operand scale come from the range of the operand in each run.
    """
    codes = writer.codes_of(node, weight, "dynamic", "")
    b, stem = writer.before(node), str(weight.value.name)
    matrix = codes.codes if codes.axis == 1 else np.ascontiguousarray(codes.codes.T)
    quantized, scale, zero = b.ops("DynamicQuantizeLinear", node.inputs[0], outputs=3)
    stored = writer.constant(matrix, f"{stem}_codes")
    scales = writer.constant(codes.scale, f"{stem}_scale")
    sums = b.cast(b.op("MatMulInteger", quantized, stored, zero), ir.DataType.FLOAT)
    result = b.op("Mul", sums, b.op("Mul", scale, scales))
    bias = optional_input(node, 2)
    if bias is not None:
        result = b.op("Add", result, bias)
    _replace(writer.model, node.outputs[0], result)


def _replace(model: ir.Model, old: ir.Value, new: ir.Value) -> None:
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
