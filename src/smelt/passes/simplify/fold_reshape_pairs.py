"""Cancel Reshapes across the elementwise operators between them.

    before   x: B,S,4 ─> Reshape(-1,4) ─> Mul(2) ─> Relu ─> Reshape(B,S,4) ─> y
    after    x ─> Mul(2) ─> Relu ─> y

Elementwise operators that read each other's results form a region, with the Reshapes before them.
The region is then computed in the shape before these Reshapes. Flatten, Squeeze and Unsqueeze count
as Reshapes.

Needs    (1) operands that are all reshaped from one proved shape to one proved shape, or that have
         one element; (2) QuantizeLinear and DequantizeLinear with one scale; (3) only Reshapes
         back to the first shape as readers outside the region.
Keeps    (1) regions that are outputs or have other readers: they would be computed twice. A first
         Reshape stays for its other readers; (2) a Reshape from a DequantizeLinear to an int8
         QuantizeLinear whose dequantized result has several readers. Without the Reshape, they
         would read the int8 value before it. ONNX Runtime on x86 computes an operator in integers
         only if its int8 result has one reader, so it would compute the operator in floats.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.opset import RESHAPES
from smelt.ir.regions import Region, Regions
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.same_shape import same_shape, static_shape
from smelt.ir.worklist import RuleStats
from smelt.operators.elementwise import ELEMENTWISE, FIRST_ONLY
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

_QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear"})

_MIDDLE = ELEMENTWISE | FIRST_ONLY | _QUANTIZERS
"""Operators that may be between the Reshapes of a region."""


@graph_pass("fold_reshape_pairs", __doc__, exactness=EXACT)
def fold_reshape_pairs(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Compute the regions of each graph, subgraphs included, without their Reshapes."""
    for graph in cx.index().graphs:
        _Graph(graph, cx, rewriter, stats).run()


class _Graph:
    """The regions of one graph, and the steps that compute them without their Reshapes.

    ``shapes`` maps each result of a region to the shape that it has without the Reshapes.
    """

    def __init__(
        self, graph: ir.Graph, cx: PassContext, rewriter: Rewriter, stats: RuleStats
    ) -> None:
        self.graph = graph
        self.cx = cx
        self.rewriter = rewriter
        self.stats = stats
        self.shapes: dict[ir.Value, ir.Shape] = {}

    def run(self) -> None:
        """Fold every region whose readers all reshape back."""
        for region in self.regions():
            if region.is_among(self.rewriter.dead):
                continue
            if any(map(_divides_quantizations, region.sources)):  # keeps 2
                continue
            ends = self.returning_reshapes(region)
            if ends is None:
                first = next(iter(region.nodes))
                self.stats.miss("fold_reshape_pairs", "another node reads a reshaped result", first)
            elif ends:
                self.fold(region, ends)

    def regions(self) -> list[Region]:
        """Return the regions: Reshapes, and elementwise nodes that could run before them."""
        regions = Regions()
        for node in self.graph:
            if _is_reshape(node):
                source, value = node.inputs[0], node.outputs[0]
                if source is not None and source.shape is not None and value.shape is not None:
                    self.shapes[value] = source.shape
                    regions.begin(node)
            elif (shape := self.shape_before(node)) is not None:
                regions.join(node, self.operands(node))
                self.shapes[node.outputs[0]] = shape
        return regions.with_nodes()

    def operands(self, node: ir.Node) -> Iterator[ir.Value]:
        """Return the operands of ``node`` that a region computes or reshapes."""
        candidates = node.inputs[:1] if _has_one_tensor(node) else node.inputs
        return (value for value in candidates if value is not None and value in self.shapes)

    def shape_before(self, node: ir.Node) -> ir.Shape | None:
        """Return the shape in which ``node`` could compute without the Reshapes, else None."""
        if not self.shapes or node.op_type not in _MIDDLE or len(node.outputs) != 1:
            return None
        if node.domain or not is_known(node):
            return None
        reshaped = list(self.operands(node))
        if not reshaped:
            return None
        first, result = self.shapes[reshaped[0]], node.outputs[0].shape
        for value in reshaped:
            # needs 1
            if not same_shape(value.shape, result) or not same_shape(self.shapes[value], first):
                return None
        if node.op_type in _QUANTIZERS and not _has_one_scale(node, len(first)):  # needs 2
            return None
        if not _has_one_tensor(node):
            others = (v for v in node.inputs if v is not None and v not in self.shapes)
            if any(not _has_one_element(v, first) and self.scalar(v) is None for v in others):
                return None
        return first

    def scalar(self, value: ir.Value) -> np.ndarray | None:
        """Return a constant of one element, of any rank, as a scalar; else None."""
        array = self.cx.constants.get(value)
        return array.reshape(()) if array is not None and array.size == 1 else None

    def returning_reshapes(self, region: Region) -> list[ir.Node] | None:
        """Return the Reshapes that lead back, in order; None if another node reads the region."""
        ends: dict[ir.Node, None] = {}
        for node in region.nodes:
            value = node.outputs[0]
            if value.is_graph_output():  # keeps 1
                return None
            for reader in region.readers_outside(value):
                if reader.graph is not self.graph or not _is_reshape(reader):
                    return None
                back = reader.inputs[0] is value
                # needs 3
                if not back or not same_shape(reader.outputs[0].shape, self.shapes[value]):
                    return None
                ends[reader] = None
        return list(ends)

    def fold(self, region: Region, ends: list[ir.Node]) -> None:
        """Compute the region in the shape before the first Reshape.

        The results replace those of the Reshapes in ``ends``; nodes that nobody reads then go.
        """
        unreshaped = region.inputs_of_sources()
        for node in region.nodes:
            builder = self.rewriter.builder(node, [node], "fold_reshape_pairs")
            operands = [self.operand(builder, node, i, unreshaped) for i in range(len(node.inputs))]
            unreshaped[node.outputs[0]] = builder.like(node, *operands)
        for end in ends:
            source = end.inputs[0]
            assert source is not None
            try:
                self.rewriter.replace(end, [unreshaped[source]], rule="fold_reshape_pairs")
                self.stats.fired["reshape back"] += 1
            except Refused as refused:
                self.stats.miss("fold_reshape_pairs", str(refused), end)
        self.rewriter.remove_dead(reversed(region.nodes))
        new_values = [unreshaped[node.outputs[0]] for node in region.nodes]
        producers = [value.producer() for value in new_values if value is not None]
        self.rewriter.remove_dead([node for node in reversed(producers) if node is not None])

    def operand(
        self,
        builder: Builder,
        node: ir.Node,
        index: int,
        unreshaped: dict[ir.Value, ir.Value | None],
    ) -> ir.Value | None:
        """Return operand ``index`` of ``node`` in the first shape; None if it is absent."""
        value = node.inputs[index]
        if value is None:
            return None
        if value in unreshaped:
            return unreshaped[value]
        if index > 0 and _has_one_tensor(node):
            return value
        number = self.scalar(value)
        return value if number is None else builder.constant(number)


def _divides_quantizations(node: ir.Node) -> bool:
    """True for a Reshape between a DequantizeLinear and an int8 QuantizeLinear whose dequantized
    result has several readers; see keeps 2.
    """
    source = node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None
    if not _is_reshape(node) or source is None or source.op_type != "DequantizeLinear":
        return False
    return any(
        reader.op_type == "QuantizeLinear"
        and reader.outputs[0].dtype == ir.DataType.INT8
        and _times_dequantized(reader.outputs[0]) > 1
        for reader in scope.consumers(node.outputs[0])
    )


def _times_dequantized(integers: ir.Value) -> int:
    """Return the number of nodes that read the dequantized ``integers``."""
    readers = scope.consumers(integers)
    return sum(len(scope.consumers(reader.outputs[0])) for reader in readers)


def _is_reshape(node: ir.Node) -> bool:
    """True if ``node`` only changes the shape of its operand."""
    return node.op_type in RESHAPES and not node.domain and is_known(node)


def _has_one_tensor(node: ir.Node) -> bool:
    """True if only the first operand has the shape of the result; the others are parameters."""
    return node.op_type in FIRST_ONLY or node.op_type in _QUANTIZERS


def _has_one_scale(node: ir.Node, rank: int) -> bool:
    """True if a QuantizeLinear or DequantizeLinear has one scale, also valid at rank ``rank``."""
    scale = node.inputs[1]
    shape = static_shape(scale) if scale is not None else None
    if shape is None or len(shape) > 1 or node.attributes.get_int("block_size", 0) != 0:
        return False
    return not shape or (shape == (1,) and -rank <= node.attributes.get_int("axis", 1) < rank)


def _has_one_element(value: ir.Value, shape: ir.Shape) -> bool:
    """True if ``value`` has one element and no more dims than ``shape``."""
    if value.shape is None or len(value.shape) > len(shape):
        return False
    return all(dim == 1 for dim in value.shape)
