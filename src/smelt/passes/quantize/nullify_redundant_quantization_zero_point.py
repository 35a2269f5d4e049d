"""Drop zero points of 0, and turn middle zero points into 0 by a change of signedness.

    before   q ─> DequantizeLinear(s, z=0) ─> y           after   q ─> DequantizeLinear(s) ─> y
    before   {200} ─> DequantizeLinear(s, z=128) ─> y     after   {72} ─> DequantizeLinear(s) ─> y
    before   x ─> QuantizeLinear(s, z=128: uint8) ─> DequantizeLinear(s, z=128) ─> y
    after    x ─> QuantizeLinear(s, z=0: int8) ─> DequantizeLinear(s) ─> y

uint8 with 128 becomes int8 with 0, int8 with -128 becomes uint8 with 0; 4 and 16 bits are alike.

Needs    (1) constant zero points, one for all or a vector of equal ones; (2) for a change of
         signedness, known readers of the integers: a constant that only one DequantizeLinear reads,
         or a QuantizeLinear that only DequantizeLinears read.
Keeps    (1) the zero point of a QuantizeLinear to int8 and other types than uint8, because it sets
         the type of the result. From opset 21 on, ``output_dtype`` could set it, but ONNX Runtime
         1.31 then finds no quantized group (MatMul of 64x256 and 256x256: 103 us, not 33; Conv:
         212, not 54) and refuses a model with a group around Add; (2) integers that are outputs or
         have other readers; (3) with ``keep-groups`` (as in the default pipeline), models that
         quantize more than constants: runtimes find quantized groups by zero points and by equal
         types around them.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import constants, scope
from smelt.ir.build import Builder
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.passes.base import EXACT, PassContext, graph_pass
from smelt.passes.quantize.quantization import Quantization, type_without_zero_point
from smelt.passes.quantize.quantized_groups import Groups, has_groups

NAME = "nullify_redundant_quantization_zero_point"

_PAIRS = (("UINT4", "INT4"), ("UINT8", "INT8"), ("UINT16", "INT16"))
KEPT_FOR_GROUPS = "keep-groups: runtimes find quantized groups by their zero points"

OTHER_SIGN = {ir.DataType[a]: ir.DataType[b] for x, y in _PAIRS for a, b in ((x, y), (y, x))}
"""The type with as many bits and the other signedness."""


@graph_pass(
    NAME, __doc__, exactness=EXACT, options_type=Groups, source=f"Core ML MIL: common::{NAME}"
)
def nullify_redundant_quantization_zero_point(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Groups
) -> None:
    """Visit every QuantizeLinear and DequantizeLinear of the model."""
    keeps_all = options.keep_groups and has_groups(cx.index())
    nullifier = _Nullifier(cx, rewriter, stats, keeps_all=keeps_all)
    for node in cx.index().nodes([("", "QuantizeLinear"), ("", "DequantizeLinear")]):
        if node not in rewriter.dead:
            nullifier.visit(node)


class _Nullifier:
    """Visits each node once; a pair is changed at its QuantizeLinear.

    With ``keeps_all``, nodes stay unchanged and are reported as near misses.
    """

    def __init__(
        self, cx: PassContext, rewriter: Rewriter, stats: RuleStats, *, keeps_all: bool
    ) -> None:
        self.keeps_all = keeps_all
        self.constants = cx.constants
        self.rewriter = rewriter
        self.stats = stats

    def visit(self, node: ir.Node) -> None:
        """Drop the zero point of ``node``, change its signedness, or record a near miss."""
        q = Quantization.of(node)
        if q is None or q.zero_point is None:
            return
        zero_points = q.zero_points(self.constants)
        if zero_points is None:  # needs 1
            self.stats.miss(NAME, "the zero point is not constant", node)
        elif self.keeps_all:  # keeps 3
            if not zero_points.any() or self.is_middle(q):
                self.stats.miss(NAME, KEPT_FOR_GROUPS, node)
        elif not zero_points.any():
            self.drop(node, q)
        elif self.is_middle(q):
            self.change_sign(node, q)

    def is_middle(self, q: Quantization) -> bool:
        """True if a change of signedness turns every zero point into 0."""
        zero_points = q.zero_points(self.constants)
        if zero_points is None or q.zero_point is None or q.integer not in OTHER_SIGN:
            return False
        return bool(np.all(zero_points == _middle_code(q.integer)))

    def drop(self, node: ir.Node, q: Quantization) -> None:
        """Replace ``node`` by one without a zero point of 0."""
        if node.op_type == "QuantizeLinear" and type_without_zero_point(node) != q.integer:
            # keeps 1
            self.stats.miss(NAME, f"the zero point sets the type of the result, {q.integer}", node)
            return
        attributes = list(node.attributes.values())
        builder = self.rewriter.builder(node, [node], NAME)
        [new] = builder.add(ir.Node("", node.op_type, node.inputs[:2], attributes))
        self.replace(node, new, "zero point 0", builder)

    def change_sign(self, node: ir.Node, q: Quantization) -> None:
        """Change the signedness of a quantized constant, or of a pair."""
        if node.op_type == "QuantizeLinear":
            self.change_pair(node, q)
            return
        data = node.inputs[0]
        if data is None or not constants.is_constant(data):
            return
        array = self.constants.get(data, limit=None)
        if array is None or not scope.has_one_use(data):  # needs 2
            self.stats.miss(NAME, "the integers have other readers", node)
            return
        moved = array.astype(np.int64) - _middle_code(q.integer)
        builder = self.rewriter.builder(node, [node], NAME)
        integers = builder.constant(moved.astype(OTHER_SIGN[q.integer].numpy()), data.name)
        new = builder.like(node, integers, node.inputs[1])
        self.replace(node, new, "constant of other signedness", builder)

    def change_pair(self, node: ir.Node, q: Quantization) -> None:
        """Change the signedness of a QuantizeLinear and of all DequantizeLinears that read it."""
        readers = scope.consumers(node.outputs[0])
        zero_point = self.constants.get(q.zero_point, limit=None)
        has_readers = readers and not node.outputs[0].is_graph_output()
        if (
            zero_point is None or not has_readers or not all(map(self.undoes_middle, readers))
        ):  # keeps 2
            self.stats.miss(NAME, "something else reads the quantized integers", node)
            return
        quantize_builder = self.rewriter.builder(node, [node], NAME)
        integers = _quantized(node, q, zero_point, quantize_builder)
        for reader in readers:
            builder = self.rewriter.builder(reader, [node, reader], NAME)
            new = builder.like(reader, integers, reader.inputs[1])
            self.replace(reader, new, "pair of other signedness", builder)
        if scope.is_dead(integers):
            quantize_builder.discard()

    def undoes_middle(self, reader: ir.Node) -> bool:
        """True for a DequantizeLinear with the middle zero point."""
        if reader.op_type != "DequantizeLinear" or reader.domain:
            return False
        q = Quantization.of(reader)
        return q is not None and self.is_middle(q)

    def replace(self, node: ir.Node, new: ir.Value, what: str, builder: Builder) -> None:
        """Replace the result of ``node`` by ``new``; record a miss if the rewriter refuses."""
        replace_or_miss(self.rewriter, self.stats, NAME, node, [new], builder, what)


def _quantized(node: ir.Node, q: Quantization, middle: np.ndarray, builder: Builder) -> ir.Value:
    """Return the operand of ``node`` quantized to the other signedness with zero point 0."""
    dtype, operands = OTHER_SIGN[q.integer], list(node.inputs[:2])
    if dtype != ir.DataType.UINT8:
        operands.append(builder.constant(np.zeros(middle.shape, dtype.numpy())))
    attributes = [attr for attr in node.attributes.values() if attr.name != "output_dtype"]
    return builder.add(ir.Node("", "QuantizeLinear", operands, attributes))[0]


def _middle_code(dtype: ir.DataType) -> int:
    """Return the zero point of ``dtype`` that becomes 0 in the type of the other signedness."""
    return (-1 if dtype.is_signed() else 1) << (dtype.bitwidth - 1)
