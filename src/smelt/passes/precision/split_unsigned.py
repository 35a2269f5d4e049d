"""Compute uint32 and uint64 with int32 tensors of 16 bits each.

    before   x: uint32 ─> BitShift(9, RIGHT) ─> Cast(float) ─> y
    after    x ─> Cast(int32) ─> low = · mod 65536, high = · / 65536
             ─> Cast(high / 512 * 65536 + low / 512 + high mod 512 * 128, float) ─> y

For targets whose integers are int32, such as Core ML, and for the generator of ``jax.random``. Sums
carry, products are made of bytes, shifts are products and quotients, and a rotation is a sum of
two parts. Inputs, outputs and states of loops hold the same bits in an int32.

Needs    (1) an operator with a row in ``digit_rows.py`` that takes the types of the node; a Cast to
         int64 needs a number below 2**31, or readers that only sort; (2) the digits of all its
         unsigned operands. Other nodes read the unsigned numbers as before.
Keeps    (1) types of inputs and outputs; (2) the Cast of an input to int32, and of an int32 to an
         output.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.passes.base import EXACT, Options, PassContext, graph_pass
from smelt.passes.precision.digit_rows import ROWS, UNSIGNED, Call
from smelt.passes.precision.digits import INT32, Arithmetic, Word
from smelt.passes.precision.unsigned_states import following, narrow_states

NAME = "split_unsigned"
UINT32 = ir.DataType.UINT32


@graph_pass(NAME, __doc__, exactness=EXACT, default=False)
def split_unsigned(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options) -> None:
    """Replace the readers of unsigned numbers that compute other types, and the outputs."""
    if not any(value.dtype in UNSIGNED for value in scope.values(cx.model)):
        return
    narrow_states(cx, rewriter, stats)
    work = _Splitting(cx, rewriter, stats)
    work.visit_graph(cx.model.graph)
    work.replace_outputs()
    rewriter.remove_dead(work.built)
    cx.forget_index()


class _Splitting:
    """The digits of each unsigned value so far; the nodes that compute them stand before its own.

    The nodes of the source stay until no one reads them.
    """

    def __init__(self, cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
        """Begin without digits."""
        self.cx, self.rewriter, self.stats = cx, rewriter, stats
        self.words: dict[ir.Value, Word] = {}
        self.built: list[ir.Node] = []
        self._bounds = IntegerBounds()
        self._constants: dict[tuple[object, ...], ir.Value] = {}

    def visit_graph(self, graph: ir.Graph) -> None:
        """Compute all nodes of ``graph`` and of its subgraphs with digits, in order."""
        for node in list(graph):
            for inner in scope.subgraphs(node):
                self.visit_graph(inner)
            operands = [value for value in node.inputs if value is not None]
            is_unsigned = any(value.dtype in UNSIGNED for value in (*operands, *node.outputs))
            if is_unsigned and node not in self.rewriter.dead:
                self._visit(node, [value for value in operands if value.dtype in UNSIGNED])

    def _visit(self, node: ir.Node, operands: list[ir.Value]) -> None:
        """Compute one node with digits; replace it if it computes another type."""
        row = ROWS.get((node.domain, node.op_type))
        if row is None:  # needs 1
            self.stats.miss(NAME, f"{node.op_type} has no row", node)
            return
        to_int32 = node.op_type == "Cast" and node.outputs[0].dtype == INT32
        if to_int32 and self._is_outside(operands[0]):  # keeps 2
            return
        if not all(map(self._has_word, operands)):  # needs 2
            self.stats.miss(NAME, "an operand has no digits", node)
            return
        b = self.rewriter.builder(node, [node], NAME)
        results = row(Call(Arithmetic(b, self._constant), node, self.words, self._bounds))
        if results is None:  # needs 1
            b.discard()
            self.stats.miss(NAME, f"these types or attributes of {node.op_type} have no row", node)
            return
        self.built += b.created
        values = [result for result in results if isinstance(result, ir.Value)]
        if values:
            replace_or_miss(self.rewriter, self.stats, NAME, node, values, b, node.op_type)
            return
        for output, result in zip(node.outputs, results, strict=True):
            assert not isinstance(result, ir.Value)
            self.words[output] = result

    def _is_outside(self, value: ir.Value) -> bool:
        """True for a value that no node with digits computes, such as an input."""
        return value not in self.words and tensor_of(value) is None

    def _has_word(self, value: ir.Value) -> bool:
        """True if the digits of ``value`` are known, or can be read from a constant or an int32."""
        if value in self.words:
            return True
        tensor, dtype = tensor_of(value), value.dtype
        assert dtype is not None
        b = self._builder_after(value)
        math = Arithmetic(b, self._constant)
        if tensor is not None:
            self.words[value] = math.constant(tensor.numpy(), UNSIGNED[dtype])
        elif dtype == UINT32:
            self.words[value] = math.split(b.cast(value, INT32), (-(2**31), 2**31 - 1), 2)
        self.built += b.created
        return value in self.words

    def _builder_after(self, value: ir.Value) -> Builder:
        """Return a builder in the graph of ``value``, after its node or before all nodes."""
        graph = scope.defining_graph(value) or self.cx.model.graph
        node = value.producer()
        place = next(iter(graph), None) if node is None else following(node)
        return Builder(self.cx.model, graph, self.cx.shapes, before=place)

    def _constant(self, array: np.ndarray) -> ir.Value:
        """Return ``array`` as a constant of the main graph, which all subgraphs may read."""
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            graph = self.cx.model.graph
            self._constants[key] = Builder(self.cx.model, graph, self.cx.shapes).constant(array)
        return self._constants[key]

    def replace_outputs(self) -> None:
        """Let the model return the joined digits of its unsigned outputs, cast from int32."""
        for value in dict.fromkeys(self.cx.model.graph.outputs):
            node = value.producer()
            if value.dtype != UINT32 or value not in self.words or node is None:
                continue
            source = node.inputs[0] if node.op_type == "Cast" else None
            if source is not None and source.dtype == INT32:  # keeps 2
                continue
            b = self.rewriter.builder(node, [node], NAME)
            joined = Arithmetic(b, self._constant).joined(self.words[value])
            result = b.cast(joined, UINT32)  # keeps 1
            results = [result if each is value else each for each in node.outputs]
            replace_or_miss(self.rewriter, self.stats, NAME, node, results, b, "output")
