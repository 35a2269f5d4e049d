"""Fold nodes whose operands are all constant.

    before   c1 ─┐                       after   c = c1 + c2, a constant
             c2 ─┴─> Add ─> c

The pass also folds integers that follow from known dims, such as a Gather from the Shape of
``[B, 8, 64]``, and turns Constant nodes into initializers.

A fold must not make the file much larger: a weight made by ConstantOfShape stays. The result may
have ``grow-limit`` bytes, or as many as the constants that it replaces. A constant counts as
replaced if all its readers fold together, as when PyTorch cuts the gates of an LSTM from one
weight, or when a model normalizes a weight. Products of constants, such as a table of positions,
may have four times the limit; results of Resize or GridSample, four times the bytes of the
constants.

Needs    (1) constant operands that no caller can override, and a result within these limits.
Keeps    (1) random operators, control flow, DequantizeLinear and a Cast to int32 of 4-bit codes
         (compressed weights), results that differ between runtimes (division by zero, floats cast
         out of range), and results with more than ``skip-const-by-size`` elements.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import constants, opset, scope
from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.operators.rounding import ROUNDED_ALIKE
from smelt.passes.base import EXACT, PassContext, graph_pass, rounding
from smelt.passes.simplify.constant_regions import region_around

SHAPE_ARITHMETIC = frozenset(
    {
        *("Shape", "Size", "Gather", "Slice", "Concat", "Squeeze", "Unsqueeze", "Identity", "Cast"),
        *("Reshape", "Add", "Sub", "Mul", "Range", "Min", "Max"),
    }
)
"""Operators whose integer results may follow from shapes."""

_INTEGERS = (ir.DataType.INT64, ir.DataType.INT32)
"""Element types of shape arithmetic."""

NEVER = frozenset({"DequantizeLinear", "QuantizeLinear", "Constant", *scope.GRAPH_CARRIERS})
"""Operators that are not folded here."""

_CODES = (ir.DataType.INT4, ir.DataType.UINT4)
"""Element types of codes of weights."""

ROUNDED = ", rounded"
"""Ends the label, in the statistics, of a fold whose floats a runtime may round differently."""
NUMPY_ROUNDS = rounding(8, "NumPy computes folded results, not the kernels of a runtime")


@dataclass(frozen=True)
class Limits:
    """``skip_const_by_size``: results with more elements are not folded; None for no limit.

    ``grow_limit``: bytes up to which a result may be larger than the constants that it replaces.
    ``seconds``: CPU time after which nothing more is folded.
    """

    skip_const_by_size: float | None = None
    grow_limit: int = 64 * 1024
    seconds: float = 60.0


@graph_pass(
    "const_elimination",
    __doc__,
    exactness=NUMPY_ROUNDS,
    declares=lambda options, stats: (
        NUMPY_ROUNDS if any(what.endswith(ROUNDED) for what in stats.fired) else EXACT
    ),
    options_type=Limits,
    source="Core ML MIL: common::const_elimination",
)
def const_elimination(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Limits
) -> None:
    """Fold all graphs in their order."""
    folder = _Folder(cx, rewriter, stats, options)
    with rewriter.in_order():
        for graph in cx.index().graphs:
            in_function = any(f.graph is graph for f in cx.model.functions.values())
            for node in graph:
                if node not in rewriter.dead:
                    rewriter.infer_again(node)
                    folder.visit(node, in_function)


class _Folder:
    """Folds node by node, in the order of the graph, so that one result can feed the next.

    ``together`` has the nodes of regions whose results are small enough if all of them fold.
    """

    def __init__(
        self, cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Limits
    ) -> None:
        """Store the arguments; the time limit of ``options`` starts now."""
        self.cx = cx
        self.rewriter = rewriter
        self.stats = stats
        self.options = options
        self.stop_at = time.process_time() + options.seconds
        self.together: set[ir.Node] = set()

    def visit(self, node: ir.Node, in_function: bool) -> None:
        """Replace ``node`` by its constant results if they are known and small enough.

        A fold counts as rounded unless every runtime computes the same floats.
        """
        if node.op_type == "Constant" and not node.domain:
            if not in_function:
                self.lift(node)
            return
        if not self.may_be_known(node):
            return
        arrays = self.arrays(node)
        if arrays is None or not self.is_affordable(node, arrays):
            return
        builder = self.rewriter.builder(node, [node], "const_elimination")
        values = [
            None if scope.is_dead(old) else builder.constant(array)
            for old, array in zip(node.outputs, arrays, strict=True)
        ]
        same_on_all_runtimes = node.op_type in ROUNDED_ALIKE and not node.domain
        rounded = ROUNDED if not same_on_all_runtimes and _any_float(arrays) else ""
        self.replace(node, values, f"{node.op_type} of constants{rounded}", builder)

    def may_be_known(self, node: ir.Node) -> bool:
        """False if an operand rules a fold out; a quick test, before the results are computed.

        An operand that is not constant does, except in shape arithmetic on integers: the Shape of
        an input is known where its dims are, whatever the input holds.
        """
        for value in node.inputs:
            if value is not None and not constants.may_be_constant(value):
                results = node.outputs if node.op_type in SHAPE_ARITHMETIC else ()
                return any(result.dtype in _INTEGERS for result in results)
        return True

    def lift(self, node: ir.Node) -> None:
        """Turn a Constant node into an initializer."""
        tensor = constants.tensor_of(node.outputs[0])
        if tensor is None or node.outputs[0].is_graph_output() or scope.is_dead(node.outputs[0]):
            return
        builder = self.rewriter.builder(node, [node], "const_elimination")
        old = node.outputs[0]
        value = builder.tensor(tensor, old.name)
        self.replace(node, [value], "Constant to initializer", builder)
        if node in self.rewriter.dead:  # reuse the freed name, so that another run is stable
            name, old.name = old.name, None
            value.name = name

    def replace(
        self, node: ir.Node, values: Sequence[ir.Value | None], label: str, builder: Builder
    ) -> None:
        """Replace the results of ``node`` by ``values``; record a miss if the rewriter refuses."""
        rule = "const_elimination"
        replace_or_miss(self.rewriter, self.stats, rule, node, values, builder, label)

    def arrays(self, node: ir.Node) -> Sequence[np.ndarray] | None:
        """Return the results of ``node``; None if they are not constant or must not be computed."""
        from_shapes = self.from_shapes(node)
        if from_shapes is None and not self.reads_constants(node):
            return None
        if not node.domain and (node.op_type in NEVER or _widens_codes(node)):  # keeps 1
            return None
        if all(scope.is_dead(v) for v in node.outputs):
            return None
        if from_shapes is not None:
            return [from_shapes]
        if opset.is_random(node):
            return None
        if self.cx.evaluate is None:
            return None
        if time.process_time() > self.stop_at:
            why = f"the limit of {self.options.seconds:g} s for folding is reached"
            self.stats.miss("const_elimination", why, node)
            return None
        operands = [self.cx.constants.get(value, limit=None) for value in node.inputs]
        if any(a is None and v is not None for a, v in zip(operands, node.inputs, strict=True)):
            return None
        return self.cx.evaluate(node, operands)

    def from_shapes(self, node: ir.Node) -> np.ndarray | None:
        """Return an integer result that follows from known dims, else None."""
        if node.domain or node.op_type not in SHAPE_ARITHMETIC or len(node.outputs) != 1:
            return None
        value = node.outputs[0]
        if value.dtype not in _INTEGERS:
            return None
        shape = value.shape
        elements = self.cx.shapes.elements(value)
        if elements is None or shape is None or not shape.is_static() or len(shape) > 1:
            return None
        if not all(isinstance(item, int) for item in elements):
            return None
        array = np.asarray(elements, dtype=value.dtype.numpy())
        if array.size != int(np.prod(shape.numpy())):
            return None
        return array.reshape(shape.numpy())

    def reads_constants(self, node: ir.Node) -> bool:
        """True if ``node`` has operands and all are constant, by a quick check."""
        operands = [value for value in node.inputs if value is not None]
        for value in operands:
            if not constants.is_constant(value) and self.cx.constants.get(value) is None:
                return False
        return bool(operands)

    def is_affordable(self, node: ir.Node, arrays: Sequence[np.ndarray]) -> bool:
        """True if the results are small, or no larger than the constants that they replace.

        Otherwise, a region of nodes around ``node`` may be small enough as a whole; its nodes are
        then added to ``together``.
        """
        most_elements = self.options.skip_const_by_size
        if most_elements is not None and any(array.size > most_elements for array in arrays):
            self.stats.miss("const_elimination", "the result is over skip-const-by-size", node)
            return False
        new_bytes = sum(array.nbytes for array in arrays)
        freed_bytes = 0
        for value in {v: None for v in node.inputs if v is not None}:
            tensor = constants.tensor_of(value)
            if tensor is not None and scope.has_one_use(value):
                freed_bytes += tensor.nbytes
        limit = self.options.grow_limit
        if new_bytes <= max(freed_bytes, limit) or node in self.together:  # needs 1
            return True
        self.together |= (region := region_around(node, limit, self.may_fold))
        if not region:
            self.stats.miss("const_elimination", "the result is over grow-limit", node)
        return bool(region)

    def may_fold(self, node: ir.Node) -> bool:
        """False if ``node`` is never folded, whatever its operands are."""
        if not node.domain and (node.op_type in NEVER or _widens_codes(node)):
            return False
        return not opset.is_random(node) and not scope.carries_graphs(node)


def _widens_codes(node: ir.Node) -> bool:
    """True for a Cast of 4-bit integers to int32: only compressed weights have such types."""
    if node.op_type != "Cast" or node.attributes.get_int("to", 0) != ir.DataType.INT32:
        return False
    return node.inputs[0] is not None and node.inputs[0].dtype in _CODES


def _any_float(arrays: Sequence[np.ndarray]) -> bool:
    """True if an array holds real or complex floating-point numbers."""
    return any(is_float(array.dtype) or array.dtype.kind == "c" for array in arrays)
