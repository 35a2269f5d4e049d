"""Keep one copy of equal constants.

    before   w1 = {1, 2}, w2 = {1, 2}    after   w1 = {1, 2}, read in both places

Needs    the same element type, dims and bytes: -0 is not 0, and NaN equals itself. A constant of
         an outer graph serves the graphs inside it.
Keeps    constants that a graph returns or callers may override; those under ``const-threshold``
         elements. Weights are read only where another has their type and dims.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import constants, scope
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass

LONG = 4096
"""Bytes from which a constant is compared by digest."""


@dataclass(frozen=True)
class Threshold:
    """``const_threshold``: constants of fewer elements are left alone."""

    const_threshold: int = 0


@graph_pass(
    "const_deduplication",
    __doc__,
    exactness=EXACT,
    options_type=Threshold,
    source="Core ML MIL: common::const_deduplication",
)
def const_deduplication(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Threshold
) -> None:
    for root in (cx.model.graph, *(f.graph for f in cx.model.functions.values())):
        _Search(rewriter, stats, options.const_threshold).graph(root)


class _Search:
    """One walk; constants of inner graphs are forgotten when the walk leaves them."""

    def __init__(self, rewriter: Rewriter, stats: RuleStats, threshold: int) -> None:
        self.rewriter = rewriter
        self.stats = stats
        self.threshold = threshold
        self.kinds: dict[Hashable, list[ir.Value]] = {}
        self.digests: dict[ir.Value, bytes] = {}

    def graph(self, graph: ir.Graph) -> None:
        found: list[tuple[Hashable, ir.Value]] = []
        for value in list(graph.initializers.values()):
            self.visit(value, found)
        for node in graph:
            if node.op_type == "Constant" and not node.domain:
                self.visit(node.outputs[0], found)
            for inner in scope.subgraphs(node):
                self.graph(inner)
        for kind, value in found:
            self.kinds[kind].remove(value)

    def visit(self, value: ir.Value, found: list[tuple[Hashable, ir.Value]]) -> None:
        tensor = constants.tensor_of(value)
        if tensor is None or tensor.dtype == ir.DataType.STRING or scope.is_dead(value):
            return
        if tensor.size < self.threshold:
            return
        content = tensor.tobytes() if tensor.nbytes < LONG else b""
        kind: Hashable = (tensor.dtype, tuple(tensor.shape), tensor.nbytes, content)
        known = self.kinds.setdefault(kind, [])
        for other in known:
            if tensor.nbytes < LONG or self.digest(value) == self.digest(other):
                self.merge(value, other)
                return
        known.append(value)
        found.append((kind, value))

    def merge(self, value: ir.Value, other: ir.Value) -> None:
        try:
            self.rewriter.merge_constants(value, other)
            self.stats.fired["equal constant"] += 1
        except Refused:
            return

    def digest(self, value: ir.Value) -> bytes:
        if value not in self.digests:
            tensor = constants.tensor_of(value)
            assert tensor is not None
            self.digests[value] = hashlib.sha256(tensor.tobytes()).digest()
        return self.digests[value]
