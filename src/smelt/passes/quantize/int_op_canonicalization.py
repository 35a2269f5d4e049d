"""Move integers directly instead of dequantizing, moving and quantizing them again.

    before   q ─> DequantizeLinear(s, z) ─> Reshape ─> QuantizeLinear(s, z) ─> y
    after    q ─> Reshape ─> y

Applies to any tree of Transpose, Reshape, Squeeze, Unsqueeze, Flatten, Slice, Gather,
GatherElements, Expand, Tile, Concat, DepthToSpace, SpaceToDepth, nearest Resize, Pad with existing
elements, MaxPool, ReduceMax and ReduceMin whose operands are all dequantized; and to a Split whose
parts are all quantized.

Needs    (1) constant, equal parameters of the QuantizeLinear and every DequantizeLinear, and an
         exact round trip of the integers. With scales along an axis: a chain of Transposes and
         reshapes that moves that axis to the axis of the QuantizeLinear.
Keeps    (1) a move with other readers of its floats; (2) block-wise scales; (3) quantizations that
         differ, because they rescale; (4) types under 8 bits, for which runtimes have few kernels,
         and 16 bits where ONNX or its runtimes lack the operator; (5) with ``keep-groups`` (as in
         the default pipeline), moves of int8 next to a QuantizeLinear with its DequantizeLinear:
         runtimes without int8 kernels change such a pair to uint8, but not across a move; (6) also
         with ``keep-groups``, DepthToSpace and SpaceToDepth, which recent runtimes had for floats
         only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.opset import RESHAPES
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass
from smelt.passes.quantize.axis_after_move import axis_after_move
from smelt.passes.quantize.quantization import Quantization
from smelt.passes.quantize.quantized_groups import Groups, is_pair
from smelt.passes.quantize.quantized_split import QuantizedSplit
from smelt.passes.quantize.round_trip import round_trip_flaw

BYTES = frozenset({ir.DataType.INT8, ir.DataType.UINT8})
WHOLE_BYTES = BYTES | {ir.DataType.INT16, ir.DataType.UINT16}

MOVES = {
    **dict.fromkeys(("Transpose", *RESHAPES), WHOLE_BYTES),
    **dict.fromkeys(("Concat", "Expand", "Gather", "GatherElements"), WHOLE_BYTES),
    **dict.fromkeys(("Slice", "Split", "Tile"), WHOLE_BYTES),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), BYTES),
    **dict.fromkeys(("MaxPool", "Pad", "ReduceMax", "ReduceMin", "Resize"), BYTES),
}
"""Operators whose results are elements of their operand, and the integer types that ONNX and its
runtimes support for them."""

NEW_TO_INTEGERS = frozenset({"DepthToSpace", "SpaceToDepth"})
"""Moves that ONNX Runtime versions still in use support for floats only."""

MIN_OPSET = 13
"""The first opset in which all these operators support integers."""

NAME = "int_op_canonicalization"


@dataclass
class _Tree:
    """Operators before a QuantizeLinear: ``moves``, from it upwards, and ``leaves``.

    The leaves are the DequantizeLinears that the moves read.
    """

    moves: list[ir.Node] = field(default_factory=list)
    leaves: list[ir.Node] = field(default_factory=list)

    @classmethod
    def ending_at(cls, quantize: ir.Node) -> _Tree | None:
        """Return the tree; None if a value in it is neither moved nor dequantized."""
        tree, pending = cls(), [quantize.inputs[0]]
        while pending:
            value = pending.pop()
            node = value.producer() if value is not None else None
            if value is None or node is None or node.domain or node.graph is not quantize.graph:
                return None
            if node.op_type == "DequantizeLinear":
                tree.leaves.append(node)
            elif _only_moves_elements(node) and _is_read_once(node):  # keeps 1
                tree.moves.append(node)
                pending.extend(_moved_operands(node))
            else:
                return None
        return tree


def _only_moves_elements(node: ir.Node) -> bool:
    """True if each element of the result is an element of the operand."""
    if node.op_type not in MOVES or not is_known(node):
        return False
    if node.op_type == "Resize":
        coordinates = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
        nearest = node.attributes.get_string("mode", "nearest") == "nearest"
        return nearest and coordinates != "tf_crop_and_resize"
    if node.op_type == "Pad":
        return node.attributes.get_string("mode", "constant") != "constant"
    return node.op_type != "Split"


def _is_read_once(node: ir.Node) -> bool:
    """True if the first result of ``node`` has one use, and no other result is read."""
    first, *others = node.outputs
    return scope.has_one_use(first) and all(scope.is_dead(value) for value in others)


def _moved_operands(node: ir.Node) -> tuple[ir.Value | None, ...]:
    """Return the operands whose elements ``node`` moves: all of a Concat, the first of others."""
    return tuple(node.inputs if node.op_type == "Concat" else node.inputs[:1])


@graph_pass(
    NAME, __doc__, exactness=EXACT, options_type=Groups, source=f"Core ML MIL: common::{NAME}"
)
def int_op_canonicalization(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Groups
) -> None:
    """Replace quantized Splits, then trees of moves, by the same moves of integers."""
    index = cx.index()
    for split in index.nodes([("", "Split")]):
        parts = QuantizedSplit.of(split)
        if parts is not None:
            split_tree = _Tree([split], [parts.leaf])
            flaws = (
                _why_not_moved(quantize, split_tree, cx, options) for quantize in parts.quantizes
            )
            flaw = next((text for text in flaws if text is not None), None)
            _record(split, flaw or parts.replace(rewriter, NAME), stats)
    for node in index.nodes([("", "QuantizeLinear")]):
        tree = _Tree.ending_at(node)
        if tree is not None and tree.moves:
            flaw = _why_not_moved(node, tree, cx, options)
            _record(node, flaw or _replace(rewriter, node, tree), stats)


def _record(node: ir.Node, flaw: str | None, stats: RuleStats) -> None:
    """Record that the integers around ``node`` moved, or the near miss ``flaw``."""
    if flaw is None:
        stats.fired[NAME] += 1
    else:
        stats.miss(NAME, flaw, node)


def _why_not_moved(quantize: ir.Node, tree: _Tree, cx: PassContext, options: Groups) -> str | None:
    """Return why the integers should not move, or might differ; None if they can move."""
    if quantize.graph is None or cx.index().opsets[quantize.graph] < MIN_OPSET:
        return f"the opset is below {MIN_OPSET}"
    if options.keep_groups and _is_in_pairs(quantize, tree):  # keeps 5
        return "a runtime may convert the pairs around the move from int8 to uint8"
    # keeps 6
    if options.keep_groups and any(move.op_type in NEW_TO_INTEGERS for move in tree.moves):
        return "a runtime may support the move for floats only"
    return _flaw_of_numbers(quantize, tree, cx.constants)


def _is_in_pairs(quantize: ir.Node, tree: _Tree) -> bool:
    """True for int8 if a leaf reads a QuantizeLinear, or a DequantizeLinear reads ``quantize``."""
    integers = [leaf.inputs[0] for leaf in tree.leaves]
    if not any(value is not None and value.dtype == ir.DataType.INT8 for value in integers):
        return False
    producers = [value.producer() for value in integers if value is not None]
    return is_pair(quantize) or any(
        n is not None and n.op_type == "QuantizeLinear" for n in producers
    )


def _flaw_of_numbers(quantize: ir.Node, tree: _Tree, constants: Constants) -> str | None:
    """Return why moved integers might differ from the quantized floats; None if they are equal."""
    quantization = Quantization.of(quantize)
    if quantization is None:
        return "the quantization parameters are unknown"
    for move in tree.moves:
        if quantization.integer not in MOVES[move.op_type]:  # keeps 4
            return f"{move.op_type} may have no kernel for {quantization.integer}"
    for leaf in tree.leaves:
        dequantization = Quantization.of(leaf)
        if dequantization is None:
            return "the quantization parameters are unknown"
        if dequantization.block_size or quantization.block_size:  # keeps 2
            return "each block has its own scale"
        if dequantization.axis is not None:
            axis = _axis_after(tree, dequantization.axis)
            if axis is None:
                return "the move does not keep the axis of the scales"
            dequantization = replace(dequantization, axis=axis)
        flaw = round_trip_flaw(dequantization, quantization, constants)  # needs 1, keeps 3
        if flaw is not None:
            return flaw
    return None


def _axis_after(tree: _Tree, axis: int) -> int | None:
    """Return the position of ``axis`` of the only leaf after all moves; None if a move loses it."""
    moved: int | None = axis
    for move in reversed(tree.moves):
        moved = axis_after_move(move, moved) if moved is not None else None
    return moved


def _replace(rewriter: Rewriter, quantize: ir.Node, tree: _Tree) -> str | None:
    """Replace ``quantize`` by the moves on integers; return the reason if the rewriter refuses."""
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
