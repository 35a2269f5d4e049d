"""Quantize constants at compile time, so that weights are stored as integers.

    before   {floats} ─> QuantizeLinear(s, z) ─> DequantizeLinear(s, z) ─> y
    after    {integers} ─> DequantizeLinear(s, z) ─> y

A DequantizeLinear of an initializer is ONNX's form of a compressed weight. Other nodes that compute
its integers, scales or zero points from constants, or the integers of a MatMulInteger, are
evaluated at compile time, and Constant nodes that it reads become initializers.

Needs    (1) positive normal scales, and quotients that all runtimes round to the same integer.
Keeps    (1) every DequantizeLinear; (2) constants with NaN; (3) float16 constants that round to
         different integers depending on whether a runtime divides in float16 or float32;
         (4) integers of over 64 KiB that are larger than the constants they are computed from;
         (5) without ``copy-shared``, a Transpose of over 64 KiB of a constant that other nodes
         also read, so that the file does not store the constant twice. Targets whose own kernels
         read the weights set ``copy-shared``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import constants, opset, scope
from smelt.ir.build import Builder
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.passes.base import EXACT, PassContext, graph_pass
from smelt.passes.quantize.quantized_constant import quantized
from smelt.passes.simplify.const_elimination import NEVER

NAME = "dequantize_to_constexpr"
QUANTIZERS = frozenset({"QuantizeLinear", "DequantizeLinear", "MatMulInteger"})
GROW_LIMIT = 64 * 1024
"""Limit in bytes of a result that is larger than its operands."""


@dataclass(frozen=True)
class Copies:
    """``copy_shared``: transposed constants are folded even if other nodes read the original."""

    copy_shared: bool = False


@graph_pass(
    NAME,
    __doc__,
    exactness=EXACT,
    options_type=Copies,
    source=f"Core ML MIL: common::{NAME}",
)
def dequantize_to_constexpr(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Copies
) -> None:
    """Fold the constant operands of quantizers in all graphs."""
    if not cx.index().has(*QUANTIZERS):
        return
    functions = {function.graph for function in cx.model.functions.values()}
    graphs = cx.index().graphs
    constant = _constant_expressions(graphs)
    read_by_quantizers = _read_by_quantizers(graphs, constant)
    folder = _Folder(cx, rewriter, stats, options)
    for graph in graphs:
        for node in graph:
            is_read = any(value in read_by_quantizers for value in node.outputs)
            if not is_read or node in rewriter.dead:
                continue
            if node.op_type != "Constant":
                folder.fold(node)
            elif graph not in functions:  # A function has no initializers.
                folder.lift(node)


def _constant_expressions(graphs: Sequence[ir.Graph]) -> set[ir.Value]:
    """Return the results of nodes that could be computed at compile time.

    Such nodes read only constants, or results of such nodes. A DequantizeLinear is not one of them.
    """
    results: set[ir.Value] = set()
    for graph in graphs:
        for node in graph:
            operands = [value for value in node.inputs if value is not None]
            has_constants = all(
                value in results or constants.is_constant(value) for value in operands
            )
            is_constant = node.op_type == "Constant" and not node.domain
            if is_constant or (has_constants and operands and _may_fold(node)):
                results.update(node.outputs)
    return results


def _may_fold(node: ir.Node) -> bool:
    """True if ``node`` may be evaluated at compile time; a DequantizeLinear stays."""
    if node.domain or opset.is_random(node):
        return False
    if any(attr.is_ref() for attr in node.attributes.values()):
        return False
    return node.op_type == "QuantizeLinear" or node.op_type not in NEVER  # keeps 1


def _read_by_quantizers(graphs: Sequence[ir.Graph], constant: set[ir.Value]) -> set[ir.Value]:
    """Return the values of ``constant`` that quantizers read, directly or through other nodes.

    Results of a constant QuantizeLinear belong to them. Readers come before producers in the walk.
    """
    read: set[ir.Value] = set()
    for graph in reversed(graphs):
        for node in reversed(graph):
            quantizes = node.op_type in QUANTIZERS and not node.domain
            if quantizes or any(value in read for value in node.outputs):
                read.update(v for v in node.inputs if v is not None and v in constant)
            if node.op_type == "QuantizeLinear" and not node.domain:
                read.update(v for v in node.outputs if v in constant)
    return read


class _Folder:
    """Evaluates nodes in the order of the graph, so that one result can feed the next."""

    def __init__(
        self, cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Copies
    ) -> None:
        self.cx = cx
        self.rewriter = rewriter
        self.stats = stats
        self.options = options

    def lift(self, node: ir.Node) -> None:
        """Turn a Constant node into an initializer."""
        output = node.outputs[0]
        tensor = constants.tensor_of(output)
        if tensor is not None and not output.is_graph_output():
            builder = self.rewriter.builder(node, [node], NAME)
            self.replace(node, [builder.tensor(tensor, output.name)], builder)

    def fold(self, node: ir.Node) -> None:
        """Replace ``node`` by its constant results, or record a miss."""
        operands = [self.cx.constants.get(value, limit=None) for value in node.inputs]
        if any(a is None and v is not None for a, v in zip(operands, node.inputs, strict=True)):
            return
        result = self.computed(node, operands)
        if isinstance(result, str):
            self.stats.miss(NAME, result, node)
            return
        bytes_read = sum(array.nbytes for array in operands if array is not None)
        if sum(array.nbytes for array in result) > max(bytes_read, GROW_LIMIT):  # keeps 4
            self.stats.miss(NAME, "the result is larger than its operands", node)
            return
        if not self.options.copy_shared and _copies(node, result):  # keeps 5
            self.stats.miss(NAME, "other nodes read the constant that it transposes", node)
            return
        builder = self.rewriter.builder(node, [node], NAME)
        sources = [value for value in node.inputs if value is not None]
        new_constants = [
            None if scope.is_dead(old) else builder.constant(array)
            for old, array in zip(node.outputs, result, strict=True)
        ]
        if self.replace(node, new_constants, builder):
            for value in dict.fromkeys(sources):
                self.rewriter.drop_initializer(value)

    def computed(
        self, node: ir.Node, operands: Sequence[np.ndarray | None]
    ) -> Sequence[np.ndarray] | str:
        """Return the results of ``node``, or a text that says why they are unknown."""
        if node.op_type != "QuantizeLinear":
            result = self.cx.evaluate(node, operands) if self.cx.evaluate is not None else None
            return result if result is not None else f"{node.op_type} is not computed here"
        array = operands[0]
        if array is None:
            return "there is nothing to quantize"
        integers = quantized(array, node, self.cx.constants)  # needs 1, keeps 2, 3
        return integers if isinstance(integers, str) else [integers]

    def replace(self, node: ir.Node, values: Sequence[ir.Value | None], builder: Builder) -> bool:
        """Replace the results of ``node`` by ``values``; record a miss if the rewriter refuses."""
        fired = f"{node.op_type} of constants"
        return replace_or_miss(self.rewriter, self.stats, NAME, node, values, builder, fired)


def _copies(node: ir.Node, result: Sequence[np.ndarray]) -> bool:
    """True for a large Transpose of a constant that other nodes read, too."""
    value = node.inputs[0] if node.op_type == "Transpose" and not node.domain else None
    is_large = sum(array.nbytes for array in result) > GROW_LIMIT
    return value is not None and is_large and not scope.has_one_use(value)
