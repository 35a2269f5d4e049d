"""Quantize to uint8 what is quantized to int8 as the model runs, with a zero point 128 higher.

    before   x ─> QuantizeLinear(s, z=3: int8) ─┬─> DequantizeLinear(s, z=3) ─> y
                                                └─> DequantizeLinear(s, z=3) ─> w
    after    x ─> QuantizeLinear(s, z=131: uint8) ─┬─> DequantizeLinear(s, z=131) ─> y
                                                   └─> DequantizeLinear(s, z=131) ─> w

The same numbers in every bit. ONNX Runtime has kernels for uint8 on x86, and changes the type by
itself where one node reads the number. Where several do, it leaves int8, and with it floats: a BERT
quantized by its tools took 0.5 of its time with uint8, a MobileNetV2 0.7.

Needs    (1) one scale for all, and constant zero points; (2) readers that are DequantizeLinears,
         all of them, also behind operators that only move numbers.
Keeps    (1) integers that a graph returns or that something else reads; (2) what a Softmax gives:
         on uint8 the runtime has an integer kernel for it, which is far less exact.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.opset import MOVEMENT
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass
from smelt.passes.quantize.quantization import Quantization

NAME = "unsigned_activations"

MOVES = MOVEMENT - {"Concat", "Pad", "Split"}
"""Operators whose first operand is moved to their one result, and nothing else."""

INEXACT = frozenset({"Softmax"})


@graph_pass(NAME, __doc__, exactness=EXACT, default=False)
def unsigned_activations(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: object
) -> None:
    change = _Change(cx, rewriter)
    for node in cx.index().nodes([("", "QuantizeLinear")]):
        if node in rewriter.dead or rewriter.exhausted:
            continue
        q = Quantization.of(node)
        if q is None or q.integer != ir.DataType.INT8:
            continue
        why = change.obstacle(node, q)
        if why:
            stats.miss(NAME, why, node)
            continue
        change.make(node)
        stats.fired["uint8 for int8"] += 1


class _Change:
    """Makes one QuantizeLinear at a time, and all that reads its result."""

    def __init__(self, cx: PassContext, rewriter: Rewriter) -> None:
        self.constants, self.rewriter = cx.constants, rewriter

    def obstacle(self, node: ir.Node, q: Quantization) -> str:
        """Why ``node`` stays; empty if it need not."""
        source = node.inputs[0].producer() if node.inputs[0] is not None else None
        if source is not None and source.op_type in INEXACT:  # keeps 2
            return f"the integer kernel of {source.op_type} is less exact"
        if self.zero_point(q) is None:  # needs 1
            return "there is more than one scale, or the zero point is not constant"
        pending = [node.outputs[0]]
        while pending:
            value = pending.pop()
            if value.is_graph_output():  # keeps 1
                return "the integers are returned"
            for use in value.uses():
                reader = use.node
                if reader.domain or use.idx != 0:
                    return "something else reads the integers"
                if reader.op_type in MOVES:
                    pending += reader.outputs
                    continue
                told = Quantization.of(reader) if reader.op_type == "DequantizeLinear" else None
                if told is None or self.zero_point(told) is None:  # needs 2
                    return "something else reads the integers"
        return ""

    def zero_point(self, q: Quantization) -> np.ndarray | None:
        """That of uint8, as an operand; None where ``q`` has several or none that is constant."""
        numbers = q.zero_points(self.constants)
        if numbers is None or q.axis is not None or numbers.size != 1:
            return None
        given = q.zero_point if q.zero_point is not None else q.scale
        shape = self.constants.get(given)
        if shape is None:
            return None
        return (numbers.reshape(shape.shape) + 128).astype(np.uint8)

    def make(self, node: ir.Node) -> None:
        b = self.rewriter.builder(node, [node], NAME)
        self.follow(node.outputs[0], self.like(node, node.inputs[0], b))
        self.rewriter.remove_dead([node])

    def like(self, node: ir.Node, x: ir.Value | None, b: Builder) -> ir.Value:
        """The same (de)quantization of or to uint8."""
        q = Quantization.of(node)
        zero_point = None if q is None else self.zero_point(q)
        assert zero_point is not None
        quantizes = node.op_type == "QuantizeLinear"
        kept = [a for a in node.attributes.values() if not (quantizes and a.name == "output_dtype")]
        operands = (x, node.inputs[1], b.constant(zero_point))
        return b.add(ir.Node("", node.op_type, operands, kept))[0]

    def follow(self, old: ir.Value, new: ir.Value) -> None:
        """Let all that reads ``old`` read ``new``; the graph was asked whether that may be."""
        for reader in scope.consumers(old):
            b = self.rewriter.builder(reader, [reader], NAME)
            if reader.op_type != "DequantizeLinear":
                self.follow(reader.outputs[0], b.like(reader, new, *reader.inputs[1:]))
                continue
            real = self.like(reader, new, b)
            try:
                self.rewriter.replace(reader, [real], trust_shape=True, rule=NAME)
            except Refused:  # what remains reads int8, as before
                b.discard()
