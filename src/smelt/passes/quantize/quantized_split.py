"""Recognize a Split whose parts are all quantized, and replace it by a Split of integers."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rewrite import Refused, Rewriter


@dataclass(frozen=True)
class QuantizedSplit:
    """A Split of the result of ``leaf``, a DequantizeLinear; each node of ``quantizes`` reads one
    part.

    Parts without a reader in ``quantizes`` are dead.
    """

    split: ir.Node
    leaf: ir.Node
    quantizes: tuple[ir.Node, ...]

    @classmethod
    def of(cls, split: ir.Node) -> QuantizedSplit | None:
        """Return the group around ``split``; None if one of its parts is read as floats."""
        source = split.inputs[0]
        leaf = source.producer() if source is not None else None
        if leaf is None or not _is(leaf, "DequantizeLinear") or leaf.graph is not split.graph:
            return None
        quantizes = []
        for part in split.outputs:
            if scope.is_dead(part):
                continue
            readers = scope.consumers(part)
            if part.is_graph_output() or len(readers) != 1 or scope.num_uses(part) != 1:
                return None
            if not _is(readers[0], "QuantizeLinear") or readers[0].graph is not split.graph:
                return None
            quantizes.append(readers[0])
        return cls(split, leaf, tuple(quantizes)) if quantizes else None

    def replace(self, rewriter: Rewriter, rule: str) -> str | None:
        """Split the integers instead; return the reason if the rewriter refuses, else None."""
        b = rewriter.builder(self.split, [self.split, self.leaf, *self.quantizes], rule)
        node = self.split
        inputs = [self.leaf.inputs[0], *node.inputs[1:]]
        kept = list(node.attributes.values())
        made = b.add(ir.Node("", "Split", inputs, kept, num_outputs=len(node.outputs)))
        read = [part for part in node.outputs if not scope.is_dead(part)]
        parts = {old: new for old, new in zip(node.outputs, made, strict=True) if old in read}
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


def _is(node: ir.Node, op_type: str) -> bool:
    return node.op_type == op_type and not node.domain
