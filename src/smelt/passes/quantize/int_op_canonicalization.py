"""Move integers as integers, not as floats between two equal quantizations.

    before   q ─> DequantizeLinear(s, z) ─> Reshape ─> QuantizeLinear(s, z) ─> y
    after    q ─> Reshape ─> y

Applies to any tree of Transpose, Reshape, Squeeze, Unsqueeze, Flatten, Slice, Gather, Expand,
Concat and MaxPool that ends in dequantized values.

Needs    the parameters of the QuantizeLinear and of every DequantizeLinear constant and equal, and
         integers that survive the round trip. Scales of an axis: a chain of Transposes and
         reshapes that moves the one axis to the other.
Keeps    a move whose floats something else reads; scales of blocks; two quantizations that differ,
         which rescale; types under 8 bits, which runtimes hardly move, and MaxPool of 16 bits,
         which ONNX does not have. With ``keep-groups``, as in the default pipeline: moves of int8
         next to a QuantizeLinear with its DequantizeLinear, which runtimes without kernels for
         int8 turn to uint8 as a pair, and not across a move.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass
from smelt.passes.quantize.groups import Groups, is_pair
from smelt.passes.quantize.moved_axis import RESHAPES, moved_axis
from smelt.passes.quantize.quantization import Quantization
from smelt.passes.quantize.round_trip import round_trip_flaw

BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})
WHOLE_BYTES = BYTES | {ir.DataType.INT16, ir.DataType.UINT16}

MOVES = {
    **dict.fromkeys(("Transpose", *RESHAPES), WHOLE_BYTES),
    **dict.fromkeys(("Concat", "Expand", "Gather", "Slice"), WHOLE_BYTES),
    "MaxPool": BYTES,
}
"""Operators that only choose among elements of what they move, and the integers that ONNX and its
runtimes move so."""

MIN_OPSET = 13
"""Since then all of them take integers."""

NAME = "int_op_canonicalization"


@dataclass
class _Tree:
    """What stands before a QuantizeLinear: ``moves`` from it up, and the ``leaves`` they read."""

    moves: list[ir.Node] = field(default_factory=list)
    leaves: list[ir.Node] = field(default_factory=list)

    @classmethod
    def above(cls, quantize: ir.Node) -> _Tree | None:
        """The tree, or None if there is a value in it that is neither moved nor dequantized."""
        tree, pending = cls(), [quantize.inputs[0]]
        while pending:
            value = pending.pop()
            node = value.producer() if value is not None else None
            if value is None or node is None or node.domain or node.graph is not quantize.graph:
                return None
            if node.op_type == "DequantizeLinear":
                tree.leaves.append(node)
            elif node.op_type in MOVES and _is_read_once(node):
                tree.moves.append(node)
                pending.extend(_moved_operands(node))
            else:
                return None
        return tree


def _is_read_once(node: ir.Node) -> bool:
    first, *others = node.outputs
    return scope.has_one_use(first) and all(scope.is_dead(value) for value in others)


def _moved_operands(node: ir.Node) -> tuple[ir.Value | None, ...]:
    return tuple(node.inputs if node.op_type == "Concat" else node.inputs[:1])


@graph_pass(
    NAME, __doc__, exactness=EXACT, options_type=Groups, source=f"Core ML MIL: common::{NAME}"
)
def int_op_canonicalization(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Groups
) -> None:
    index = cx.index()
    for node in index.nodes([("", "QuantizeLinear")]):
        tree = _Tree.above(node)
        if tree is None or not tree.moves or node.graph is None:
            continue
        if index.opsets[node.graph] < MIN_OPSET:
            stats.miss(NAME, f"the opset is below {MIN_OPSET}", node)
            continue
        if options.keep_groups and _is_in_pairs(node, tree):
            stats.miss(NAME, "a runtime may turn the pairs around the move to uint8", node)
            continue
        flaw = _flaw(node, tree, cx.constants) or _replace(rewriter, node, tree)
        if flaw is None:
            stats.fired[NAME] += 1
        else:
            stats.miss(NAME, flaw, node)


def _is_in_pairs(quantize: ir.Node, tree: _Tree) -> bool:
    """True if integers are int8 and a pair ends at a leaf, or begins with ``quantize``."""
    integers = [leaf.inputs[0] for leaf in tree.leaves]
    if not any(value is not None and value.dtype == ir.DataType.INT8 for value in integers):
        return False
    made = [value.producer() for value in integers if value is not None]
    return is_pair(quantize) or any(n is not None and n.op_type == "QuantizeLinear" for n in made)


def _flaw(quantize: ir.Node, tree: _Tree, constants: Constants) -> str | None:
    """Why the integers might not be those that moving them gives; None if they are."""
    q = Quantization.of(quantize)
    if q is None:
        return "it is not known how the integers are quantized"
    for move in tree.moves:
        if q.integer not in MOVES[move.op_type]:
            return f"{move.op_type} may not take {q.integer}"
        if any(attr.is_ref() for attr in move.attributes.values()):
            return f"an attribute of the {move.op_type} is that of a function"
    for leaf in tree.leaves:
        dq = Quantization.of(leaf)
        if dq is None:
            return "it is not known how the integers are quantized"
        if dq.block_size or q.block_size:
            return "each block has its own scale"
        if dq.axis is not None:
            axis = _axis_after(tree, dq.axis)
            if axis is None:
                return "the axis of the scales does not survive the move"
            dq = replace(dq, axis=axis)
        flaw = round_trip_flaw(dq, q, constants)
        if flaw is not None:
            return flaw
    return None


def _axis_after(tree: _Tree, axis: int) -> int | None:
    """Where ``axis`` of the only leaf ends up; None if it is lost in one of the moves."""
    moved: int | None = axis
    for move in reversed(tree.moves):
        moved = moved_axis(move, moved) if moved is not None else None
    return moved


def _replace(rewriter: Rewriter, quantize: ir.Node, tree: _Tree) -> str | None:
    builder = rewriter.builder(quantize, [quantize, *tree.moves, *tree.leaves], NAME)
    integers = {leaf.outputs[0]: leaf.inputs[0] for leaf in tree.leaves}
    for move in reversed(tree.moves):
        operands = [integers.get(value, value) if value else None for value in move.inputs]
        integers[move.outputs[0]] = builder.like(move, *operands)
    moved = quantize.inputs[0]
    assert moved is not None
    try:
        rewriter.replace(quantize, [integers[moved]], trust_shape=True, rule=NAME)
    except Refused as refused:
        builder.discard()
        return str(refused)
    return None
