"""Compute a mask of 0 and 1 by float operators, for a consumer that lacks those of bools.

    before   Cast(And(m, Cast(ids, bool)), float)
    after    Mul(Cast(m, float), Clip(Abs(Cast(ids, float)), 0, 1))

Reshapes, slices and the like between the bools and the Cast move floats then. Other readers of the
bools keep them. The pass runs for ``--for CONSUMER``, after the default pipeline.

Needs    (1) a consumer that says which nodes it takes, and does not take one between the bools and
         the Cast; (2) And, Or, Xor, Not, an Equal of integers, a Cast from integers or from such a
         mask, a constant, or an operator that only moves elements; other bools are cast as before.
Keeps    (1) casts of floats to bool, which are true for NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.partition import is_constant_node
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.operators.decompositions.row import MOVES
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

NAME = "bools_to_floats"
LOGIC = frozenset(("And", "Or", "Xor", "Not"))
MOST_NODES = 64
"""The most nodes between the bools and the Cast."""


@graph_pass(NAME, __doc__, exactness=EXACT, default=False)
def bools_to_floats(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace each Cast of bools to floats that no consumer takes whole."""
    if cx.computes is None or cx.kernels is None:
        return
    for graph in cx.index().graphs:
        for node in list(graph):
            if node in rewriter.dead or rewriter.exhausted or not _is_cast_to_float(node):
                continue
            between = _replaceable_nodes(node, cx.constants)
            if not between or all(map(cx.computes, between)):  # needs 1
                continue
            b = rewriter.builder(node, [node], NAME)
            dtype = node.outputs[0].dtype
            assert dtype is not None
            number = _Numbers(b, cx.constants, dtype, set(between)).of(node.inputs[0])
            replace_or_miss(rewriter, stats, NAME, node, [number], b, "Cast")


def _is_cast_to_float(node: ir.Node) -> bool:
    """True for a Cast from bool to a floating-point type."""
    if node.op_type != "Cast" or node.domain or node.inputs[0] is None:
        return False
    source, result = node.inputs[0].dtype, node.outputs[0].dtype
    return source == ir.DataType.BOOL and result in FLOATS


FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


def _replaceable_nodes(cast: ir.Node, constants: Constants) -> list[ir.Node]:
    """Return the producers of the input of ``cast`` that floats can replace, the nearest first.

    Returns an empty list if there are more than ``MOST_NODES``.
    """
    visited: dict[ir.Node, None] = {}
    pending = [cast.inputs[0]]
    while pending:
        value = pending.pop()
        node = None if value is None else value.producer()
        if node is None or node in visited or node.graph is not cast.graph:
            continue
        if not _has_float_form(node, constants):  # needs 2
            continue
        visited[node] = None
        if len(visited) > MOST_NODES:
            return []
        if node.op_type in LOGIC or node.op_type == "Concat":
            pending += node.inputs
        elif node.op_type in MOVES:
            pending.append(node.inputs[0])
    return list(visited)


def _has_float_form(node: ir.Node, constants: Constants) -> bool:
    """True if ``_Numbers`` computes the bools of ``node`` from floats."""
    if node.domain or node.outputs[0].dtype != ir.DataType.BOOL or is_constant_node(node):
        return False
    first = node.inputs[0] if node.inputs else None
    if node.op_type in ("Cast", "Equal"):
        is_count = node.op_type == "Cast" and most_of(first, constants) is not None
        return is_count or _is_integer(first)  # keeps 1
    return node.op_type in LOGIC or node.op_type in MOVES or node.op_type == "Concat"


def most_of(value: ir.Value | None, constants: Constants) -> float | None:
    """Return 1 for floats that are 0 or 1, infinity for other counts (0, 1, 2, ...), else None."""
    node = None if value is None else value.producer()
    array = constants.get(value)
    if array is not None:
        counts = bool(array.size) and bool(((array >= 0) & (array == np.floor(array))).all())
        if not counts:
            return None
        return 1.0 if array.max() <= 1 else np.inf
    if node is None or node.domain or not node.inputs:
        return None
    first = node.inputs[0]
    if node.op_type == "Cast":
        return 1.0 if first is not None and first.dtype == ir.DataType.BOOL else None
    if node.op_type in MOVES:
        return most_of(first, constants)
    if node.op_type == "Abs":
        cast = None if first is None else first.producer()
        whole = cast is not None and cast.op_type == "Cast" and _is_integer(cast.inputs[0])
        return np.inf if whole else most_of(first, constants)
    if node.op_type == "Clip":
        bounds = [constants.scalar(each) for each in node.inputs[1:]]
        return 1.0 if bounds == [0, 1] and most_of(first, constants) is not None else None
    if node.op_type in ("Mul", "Add"):
        most = [most_of(each, constants) for each in node.inputs]
        if None in most:
            return None
        return 1.0 if node.op_type == "Mul" and most == [1.0, 1.0] else np.inf
    return None


def _is_integer(value: ir.Value | None) -> bool:
    """True for a value of an integer type; bools are none."""
    return value is not None and value.dtype is not None and value.dtype.is_integer()


@dataclass
class _Numbers:
    """Builds the floats 0 and 1 of bools; ``replaced`` are the nodes that get a float form."""

    b: Builder
    constants: Constants
    dtype: ir.DataType
    replaced: set[ir.Node]
    built: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def of(self, value: ir.Value | None) -> ir.Value:
        """Return the floats of the bools ``value``."""
        assert value is not None
        if value not in self.built:
            node = value.producer()
            inside = node is not None and node in self.replaced
            self.built[value] = self._form(node) if inside and node else self._cast(value)
        return self.built[value]

    def _cast(self, value: ir.Value) -> ir.Value:
        """Return ``value`` cast to the float type; the cast of a constant is a constant."""
        array = self.constants.get(value)
        if array is not None:
            return self.b.constant(array.astype(self.dtype.numpy()))
        return self.b.op("Cast", value, to=int(self.dtype))

    def _number(self, number: float) -> ir.Value:
        """Return ``number`` as a scalar constant of the float type."""
        return self.b.constant(np.asarray(number, self.dtype.numpy()))

    def _is_nonzero(self, value: ir.Value | None) -> ir.Value:
        """Return 0 for the integer 0, and 1 for others."""
        assert value is not None
        size = self.b.op("Abs", self.b.op("Cast", value, to=int(self.dtype)))
        return self.b.op("Clip", size, self._number(0), self._number(1))

    def _form(self, node: ir.Node) -> ir.Value:
        """Return the result of ``node`` computed by floats."""
        b, op_type = self.b, node.op_type
        if op_type == "Cast":
            return self._of_cast(node)
        if op_type == "Equal":
            differs = self._is_nonzero(b.op("Sub", *node.inputs))
            return b.op("Sub", self._number(1), differs)
        if op_type in MOVES:
            return b.like(node, self.of(node.inputs[0]), *node.inputs[1:])
        operands = [self.of(value) for value in node.inputs]
        if op_type == "Concat":
            return b.like(node, *operands)
        if op_type == "Not":
            return b.op("Sub", self._number(1), *operands)
        if op_type == "And":
            return b.op("Mul", *operands)
        if op_type == "Xor":
            return b.op("Abs", b.op("Sub", *operands))
        return b.op("Clip", b.op("Add", *operands), self._number(0), self._number(1))

    def _of_cast(self, node: ir.Node) -> ir.Value:
        """Return the floats of integers, or of floats that count, cast to bool."""
        [value] = node.inputs
        most = most_of(value, self.constants)
        if most is None:
            return self._is_nonzero(value)
        assert value is not None
        number = self.b.cast(value, self.dtype)
        return number if most == 1 else self.b.op("Clip", number, self._number(0), self._number(1))
