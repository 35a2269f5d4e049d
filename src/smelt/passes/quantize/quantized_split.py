"""Recognize a Split whose parts are all quantized, and replace it by a Split of integers."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rewrite import Refused, Rewriter


@dataclass(frozen=True)
class QuantizedSplit:
    """A Split of the result of ``leaf``, a DequantizeLinear.

    Each QuantizeLinear of ``quantizes`` reads one part; nothing reads the other parts.
    """

    split: ir.Node
    leaf: ir.Node
    quantizes: tuple[ir.Node, ...]

    @classmethod
    def of(cls, split: ir.Node) -> QuantizedSplit | None:
        """Return the group around ``split``; None if one of its parts is read as floats."""
        source = split.inputs[0]
        leaf = source.producer() if source is not None else None
        if (
            leaf is None
            or not _is_operator(leaf, "DequantizeLinear")
            or leaf.graph is not split.graph
        ):
            return None
        quantizes = []
        for part in split.outputs:
            if scope.is_dead(part):
                continue
            readers = scope.consumers(part)
            if part.is_graph_output() or len(readers) != 1 or scope.num_uses(part) != 1:
                return None
            if (
                not _is_operator(readers[0], "QuantizeLinear")
                or readers[0].graph is not split.graph
            ):
                return None
            quantizes.append(readers[0])
        return cls(split, leaf, tuple(quantizes)) if quantizes else None

    def replace(self, rewriter: Rewriter, rule: str) -> str | None:
        """Split the integers instead; return the reason if the rewriter refuses, else None."""
        b = rewriter.builder(self.split, [self.split, self.leaf, *self.quantizes], rule)
        node = self.split
        inputs = [self.leaf.inputs[0], *node.inputs[1:]]
        attributes = list(node.attributes.values())
        integers = b.add(ir.Node("", "Split", inputs, attributes, num_outputs=len(node.outputs)))
        parts = dict(zip(node.outputs, integers, strict=True))
        for quantize in self.quantizes:
            source = quantize.inputs[0]
            assert source is not None
            try:
                rewriter.replace(quantize, [parts[source]], trust_shape=True, rule=rule)
            except Refused as refused:
                if quantize is self.quantizes[0]:
                    b.discard()
                return str(refused)
        return None


def _is_operator(node: ir.Node, op_type: str) -> bool:
    """True if ``node`` is ONNX's ``op_type``."""
    return node.op_type == op_type and not node.domain
