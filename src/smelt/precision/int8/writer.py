"""Store codes and scales in a model, and build the nodes that turn them into numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.four_bits import INT4, NORMAL_FLOAT4, Grid
from smelt.precision.int8.candidates import Weight, operand_array, result_name
from smelt.precision.int8.linear import Codes, Parameters, weight_blocks, weight_codes
from smelt.precision.int8.tables import (
    bytes_of_codes,
    has_whole_blocks,
    looked_up_blocks,
    looked_up_rows,
    reads_channels_of_rows,
    two_codes_a_byte,
    unpacked_rows,
    whole_blocks,
)

BIAS_LIMIT = float(1 << 30)
"""The largest code of a bias; scales of weights grow until all codes are within it."""


@dataclass(frozen=True)
class Format:
    """How numbers are stored.

    ``signed``: activations are int8, not uint8. ``weight_bits`` is 7 for CPUs that saturate sums of
    uint8 times int8 products. ``block`` is the block of 4-bit weights, 0 for int8 weights.
    ``per_tensor``: an int8 weight has one scale. ``nf4``: 4-bit codes are of NF4, not int4.
    ``activation_bits`` are 8 or 16.
    """

    signed: bool = False
    weight_bits: int = 8
    block: int = 0
    per_tensor: bool = False
    nf4: bool = False
    activation_bits: int = 8

    @property
    def weights(self) -> str:
        """The type of weights."""
        return "int8" if not self.block else "nf4" if self.nf4 else "int4"

    @property
    def grid(self) -> Grid:
        """The numbers of 4-bit codes."""
        return NORMAL_FLOAT4 if self.nf4 else INT4


@dataclass
class Writer:
    """Adds the nodes of quantization to the main graph of ``model``.

    ``parameters`` has scale and zero point of activations by value name.
    ``given`` has codes of weights that are not the nearest, by the result of their product.
    ``tied`` are tables whose codes a Gather and products share; see ``tied_tables``.
    """

    model: ir.Model
    parameters: Mapping[str, Parameters]
    format: Format
    given: Mapping[str, Codes] = field(default_factory=dict)
    tied: frozenset[ir.Value] = frozenset()
    constants: Constants = field(default_factory=Constants)
    values: dict[str, ir.Value] = field(init=False)
    _shapes: ShapeInference = field(init=False)
    _next: dict[ir.Node, ir.Node | None] = field(init=False)
    _made: dict[tuple[object, ...], Codes] = field(default_factory=dict)
    _stored: dict[int, tuple[np.ndarray, ir.Value]] = field(default_factory=dict)
    _shared: dict[tuple[int, bool], ir.Value] = field(default_factory=dict)

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
        if weight.value in self.tied and reads_channels_of_rows(weight):
            made = self._of_table(weight, block)
            if least is None or (made.scale >= least).all():
                return made
        key = (weight.value, weight.transposed, weight.axis, bits, block)
        if least is None and key in self._made:
            return self._made[key]
        array = operand_array(weight, self.constants)
        if block:
            made = weight_blocks(array, weight.inner, block, self.format.grid)
        else:
            made = weight_codes(
                array, weight.axis, bits=bits, least=least, per_tensor=self.format.per_tensor
            )
        if least is None:
            self._made[key] = made
        return made

    def _of_table(self, weight: Weight, block: int) -> Codes:
        """Return the codes of a tied table, in the one form that all its readers share."""
        key, axis = (weight.value, block), 1 if block else 0
        if key not in self._made:
            array = self.constants.get(weight.value, None)
            assert array is not None
            self._made[key] = (
                weight_blocks(array, axis, block, self.format.grid)
                if block
                else weight_codes(
                    array,
                    axis,
                    bits=self.format.weight_bits,
                    per_tensor=self.format.per_tensor,
                )
            )
        made = self._made[key]
        return replace(made, axis=1 - axis, is_transposed=True) if weight.transposed else made

    def stored_codes(self, b: Builder, codes: Codes, stem: str) -> ir.Value:
        """Return the codes as a constant, or its Transpose."""
        stored = self.constant(codes.codes, f"{stem}_codes")
        return b.op("Transpose", stored, perm=[1, 0]) if codes.is_transposed else stored

    def dequantized(self, b: Builder, codes: Codes, stem: str) -> ir.Value:
        """Return a weight as a DequantizeLinear of its codes; names begin with ``stem``."""
        if codes.is_nf4:
            return self._looked_up(b, codes, stem)
        stored = self.stored_codes(b, codes, stem)
        scale = self.constant(codes.scale, f"{stem}_scale")
        if codes.is_transposed and codes.block:
            scale = b.op("Transpose", scale, perm=[1, 0])
        block, axis = codes.block or None, codes.axis if codes.scale.ndim else None
        return b.op("DequantizeLinear", stored, scale, axis=axis, block_size=block)

    def _looked_up(self, b: Builder, codes: Codes, stem: str) -> ir.Value:
        """Return a weight as a Gather, by its codes of NF4, from the table, times its scales.

        Products in the main graph that read the same codes share the result.
        """
        key = (id(codes.codes), codes.is_transposed)
        if b.graph is self.model.graph and key in self._shared:
            return self._shared[key]
        axis = 1 - codes.axis if codes.is_transposed else codes.axis
        stored = self.constant(whole_blocks(codes, axis), f"{stem}_codes")
        scale = self.constant(codes.scale, f"{stem}_scale")
        length = codes.codes.shape[axis]
        numbers = looked_up_blocks(b, stored, scale, axis, codes.block, length)
        result = b.op("Transpose", numbers, perm=[1, 0]) if codes.is_transposed else numbers
        if b.graph is self.model.graph:
            self._shared[key] = result
        return result

    def dequantized_rows(self, b: Builder, node: ir.Node, codes: Codes, stem: str) -> ir.Value:
        """Return the rows that the Gather ``node`` reads, from codes with scales.

        The scales are of a row, of the table or of a block. Codes of 4 bits stand two in a byte.
        """
        if codes.block:
            stored = (
                bytes_of_codes(b, self.constant(codes.codes, f"{stem}_codes"))
                if node.inputs[0] in self.tied
                else self.constant(two_codes_a_byte(codes), f"{stem}_codes")
            )
            scale = self.constant(codes.scale, f"{stem}_scale")
            unpack = looked_up_rows if codes.is_nf4 else unpacked_rows
            return unpack(b, stored, node.inputs[1], scale, codes.block)
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
