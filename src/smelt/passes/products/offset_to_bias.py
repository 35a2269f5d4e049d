"""Fold a constant added behind a Split or a move of a layer's result into the layer's bias.

    before   Gemm(x, W, b) ─> Split ─┬─> shift            after   Gemm(x, W, b | b + 1) ─> Split
                                     └─> Add(·, 1) ─> scale

    before   Gemm(x, W, b) ─> Reshape ─> Add(·, 1) ─> y   after   Gemm(x, W, b + 1) ─> Reshape ─> y

    before   MatMul(x, W) ─> Split ─> Add(·, c1), Add(·, c2), Add(·, c3) ─> q, k, v
    after    MatMul(x, W) ─> Add(c1 | c2 | c3) ─> Split ─> q, k, v

Modulation layers that scale by ``1 + s`` (DiT, FLUX, StyleGAN) have this form, and so have merged
products whose biases follow the Split (TensorFlow).

Needs    (1) a Gemm without a bias or with a constant one, or an Add of a constant, of the same type
         as the number; the sum is computed in float64, rounded once and finite; (2) known sizes of
         the parts. One Unsqueeze that keeps the axis last may be before the Split; (3) the last
         axis if rows are added, or if a product has no bias yet; in that case a row for each part.
Keeps    (1) constants that cancel to less than a sixteenth, because ``x + c - c`` rounds x;
         (2) parts with other readers, and layers with other readers before the Split; (3) a bias
         that would have more elements than the parts along the axis; (4) a Gemm that scales its
         bias.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.build import Builder
from smelt.ir.floats import is_float
from smelt.ir.known_forms import is_known
from smelt.ir.node_inputs import first_inputs
from smelt.ir.opset import RESHAPES
from smelt.ir.rewrite import Rewriter
from smelt.ir.walk import producer_of
from smelt.ir.worklist import RuleStats
from smelt.passes.base import Options, PassContext, graph_pass, rounding
from smelt.passes.convolution.rounded_product import round_to
from smelt.passes.quantize.quantized_groups import is_integer_product

MOVES = frozenset({*RESHAPES, "Transpose"})
"""Operators that only move elements."""

Offsets = dict[int, tuple[ir.Node, np.ndarray]]
"""For each output index of a Split: the Add that reads it, and the constant that it adds."""


@dataclass(frozen=True)
class _Layer:
    """A Gemm or Add whose input number ``place`` is ``bias``, and the nodes that move its result.

    ``moves`` lists them first to last. ``place`` is None for a MatMul, which has no bias: an Add is
    inserted behind it.
    """

    node: ir.Node
    place: int | None
    bias: np.ndarray
    moves: tuple[ir.Node, ...]

    def rebuilt(self, b: Builder, bias: np.ndarray) -> ir.Value:
        """Return the moved result with another bias."""
        if self.place is None:
            value = b.op("Add", self.node.outputs[0], b.constant(bias.reshape(-1)))
        else:
            inputs = first_inputs(self.node, max(len(self.node.inputs), self.place + 1))
            inputs[self.place] = b.constant(bias)
            value = b.like(self.node, *inputs)
        for move in self.moves:
            value = b.like(move, value, *move.inputs[1:])
        return value


@graph_pass("offset_to_bias", __doc__, exactness=rounding(4), after=("merge_constant_terms",))
def offset_to_bias(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options) -> None:
    """Fold the constants behind Splits into biases, then those behind moves."""
    for split, layer, bias, offsets in list(_split_layers(cx, stats)):
        if rewriter.exhausted:
            return
        adds = [add for add, _ in offsets.values()]
        b = rewriter.builder(split, [layer.node, *layer.moves, split, *adds], "offset_to_bias")
        inputs = [layer.rebuilt(b, bias), *split.inputs[1:]]
        parts = b.add(
            ir.Node(
                "", "Split", inputs, list(split.attributes.values()), num_outputs=len(split.outputs)
            )
        )
        for place, (add, _) in offsets.items():
            if rewriter.exhausted:  # the remaining Adds still read the old parts
                return
            rewriter.replace(add, (parts[place],), trust_shape=True)
            stats.fired["behind a Split"] += 1
        if not rewriter.exhausted:
            rewriter.replace(split, parts, trust_shape=True)
    for add, layer, bias in list(_moved_layers(cx)):
        if rewriter.exhausted:
            return
        b = rewriter.builder(add, [layer.node, *layer.moves, add], "offset_to_bias")
        rewriter.replace(add, (layer.rebuilt(b, bias),), trust_shape=True)
        stats.fired["behind a move"] += 1


def _moved_layers(cx: PassContext) -> Iterator[tuple[ir.Node, _Layer, np.ndarray]]:
    """Yield each Add of a number, not a row, to a moved layer, with the layer and its new bias."""
    for add in cx.index().nodes([("", "Add")]):
        value_and_number = _number(cx, add)
        if value_and_number is None or not _is_move(value_and_number[0].producer()):
            continue
        value, number = value_and_number
        layer = _layer(cx, value, add)
        total = None if layer is None else _total(layer.bias, number.reshape(()))
        if layer is not None and total is not None:
            yield add, layer, total


def _split_layers(
    cx: PassContext, stats: RuleStats
) -> Iterator[tuple[ir.Node, _Layer, np.ndarray, Offsets]]:
    """Yield each Split of a layer's result whose parts have constants added.

    With it come the layer, the new bias of the layer, and the Adds and constants by output.
    """
    for split in cx.index().nodes([("", "Split")]):
        offsets = _offsets(cx, split)
        split_value, sizes = split.inputs[0], [out.shape for out in split.outputs]
        if not offsets or not is_known(split) or split_value is None or split_value.shape is None:
            continue
        rank = len(split_value.shape)
        axis = int(opset.attribute(split, "axis", cx.model.opset_imports[""])) % max(rank, 1)
        lengths = [None if shape is None else shape[axis] for shape in sizes]
        layer = _layer(cx, split_value, split)
        if layer is None and axis == rank - 1:
            layer = _product(cx, split_value, split, offsets, stats)
        if layer is None or not all(isinstance(n, int) for n in lengths):  # needs 2
            continue
        bias = _bias_with_offsets(
            layer, rank, axis, [n for n in lengths if isinstance(n, int)], offsets
        )
        if bias is not None:
            yield split, layer, bias, offsets


def _bias_with_offsets(
    layer: _Layer, rank: int, axis: int, lengths: Sequence[int], offsets: Offsets
) -> np.ndarray | None:
    """Return the bias of ``layer`` plus the constant of each part; None if they do not fit it.

    The Split cuts ``axis`` of a value of ``rank`` into parts of ``lengths``. The constants are laid
    one behind the other along that axis, with 0 for a part that has none.
    """
    if layer.moves:
        kinds = [move.op_type for move in layer.moves]
        before, after = layer.node.outputs[0].shape, layer.moves[-1].outputs[0].shape
        if kinds != ["Unsqueeze"] or axis != rank - 1 or not before or not after:
            return None
        if before[-1] != after[-1] or before[-1] == 1:  # the Unsqueeze must keep the last axis
            return None
        rank -= len(after) - len(before)
        axis = rank - 1
    constants = [offsets[n][1] if n in offsets else np.zeros(1) for n in range(len(lengths))]
    if any(row.size not in (1, n) for row, n in zip(constants, lengths, strict=True)):
        return None
    if axis != rank - 1 and any(row.size != 1 for row in constants):
        return None
    rows = [
        np.broadcast_to(row.reshape(-1).astype(np.float64), n)
        for row, n in zip(constants, lengths, strict=True)
    ]
    summed_offsets = np.concatenate(rows).reshape(-1, *(1,) * (rank - 1 - axis))
    bias = layer.bias.reshape((1,) * (rank - layer.bias.ndim) + layer.bias.shape)
    if bias.ndim != rank or bias.shape[axis] not in (1, sum(lengths)):
        return None
    if np.broadcast(bias, summed_offsets).size > max(bias.size, sum(lengths)):  # keeps 3
        return None
    return _total(bias, summed_offsets)


def _offsets(cx: PassContext, split: ir.Node) -> Offsets:
    """Return the outputs of ``split`` that only an Add of a constant reads, with that constant."""
    offsets: Offsets = {}
    for index, output in enumerate(split.outputs):
        if output.is_graph_output() or not scope.has_one_use(output):  # keeps 2
            continue
        (reader,) = scope.consumers(output)
        row = _row(cx, reader) if reader.graph is split.graph else None
        if row is not None:
            offsets[index] = (reader, row[1])
    return offsets


def _number(cx: PassContext, add: ir.Node) -> tuple[ir.Value, np.ndarray] | None:
    """Return ``(value, number)`` if ``add`` adds one constant number to ``value``, else None."""
    value_and_row = _row(cx, add)
    return value_and_row if value_and_row is not None and value_and_row[1].size == 1 else None


def _row(cx: PassContext, add: ir.Node) -> tuple[ir.Value, np.ndarray] | None:
    """Return ``(value, row)`` if ``add`` adds a constant row or number to ``value``, else None.

    A row is an array of floats that varies along the last axis only, and does not raise the rank.
    """
    if (add.domain, add.op_type) != ("", "Add") or not is_known(add):
        return None
    for value, other in (add.inputs, add.inputs[::-1]):
        array = cx.constants.get(other, limit=None)
        if value is None or array is None or array.size != (array.shape or (1,))[-1]:
            continue
        if not is_float(array.dtype) or not array.size or value.shape is None:
            continue
        if array.ndim <= len(value.shape):
            return value, array
    return None


def _product(
    cx: PassContext, value: ir.Value, split: ir.Node, offsets: Offsets, stats: RuleStats
) -> _Layer | None:
    """Return the MatMul that computes ``value`` as a layer that can get a bias, else None.

    Only ``split`` reads it, and a constant is added to each part: then one Add before the Split
    takes the place of all the others. Its bias is -0.0, to which any number is added exactly.
    """
    node = producer_of(value, "MatMul")
    is_only_read_here = scope.has_one_use(value) and node is not None and node.graph is split.graph
    if node is None or not is_only_read_here or value.shape is None or value.dtype is None:
        return None
    if len(offsets) != len(split.outputs):  # needs 3
        return None
    size = value.shape[-1] if len(value.shape) else None
    if is_integer_product(node):  # needs 3
        why = "a runtime may multiply the dequantized operands as integers"
        stats.miss("offset_to_bias", why, split)
        return None
    if not isinstance(size, int) or cx.constants.get(node.inputs[1], limit=None) is None:
        return None
    zeros = np.full((*(1,) * (len(value.shape) - 1), size), -0.0, value.dtype.numpy())
    return _Layer(node, place=None, bias=zeros, moves=())


def _layer(cx: PassContext, value: ir.Value, reader: ir.Node) -> _Layer | None:
    """Return the Gemm, or the Add of a constant, whose moved result is ``value``, else None.

    None also if another node than ``reader``, or than the next move, reads one of the results on
    the way: it would see the new bias.
    """
    moves: list[ir.Node] = []
    while True:
        node = value.producer()
        if not scope.has_one_use(value) or value.is_graph_output():  # keeps 2
            return None
        if node is None or node.graph is not reader.graph or not is_known(node):
            return None
        if not _is_move(node):
            break
        moves.insert(0, node)
        moved = node.inputs[0]
        assert moved is not None  # a move has an operand
        value = moved
    if (node.domain, node.op_type) == ("", "Gemm"):
        return _gemm(cx, node, tuple(moves))
    if (node.domain, node.op_type) != ("", "Add"):
        return None
    for index, operand in enumerate(node.inputs):
        bias = cx.constants.get(operand, limit=None)
        if bias is not None and is_float(bias.dtype):
            return _Layer(node, index, bias, tuple(moves))
    return None


def _gemm(cx: PassContext, node: ir.Node, moves: tuple[ir.Node, ...]) -> _Layer | None:
    """Return the layer of a Gemm, with zeros if it has no bias; None for a scaled or computed
    bias."""
    x, _, bias_operand = first_inputs(node, 3)
    if x is None or x.dtype is None or node.attributes.get_float("beta", 1.0) != 1.0:
        return None  # keeps 4
    bias = cx.constants.get(bias_operand, limit=None)
    if bias_operand is None:
        bias = np.zeros(1, x.dtype.numpy())
    return _Layer(node, 2, bias, moves) if bias is not None and is_float(bias.dtype) else None


def _is_move(node: ir.Node | None) -> bool:
    """True if ``node`` is an operator of MOVES."""
    return node is not None and not node.domain and node.op_type in MOVES


def _total(bias: np.ndarray, offsets: np.ndarray) -> np.ndarray | None:
    """Return ``bias + offsets`` in the dtype of ``bias``; None if they cancel or it is not
    finite."""
    wide_bias = bias.astype(np.float64)
    total = wide_bias + offsets
    larger = np.maximum(np.abs(wide_bias), np.abs(offsets))
    if not np.isfinite(total).all() or (16 * np.abs(total) < larger).any():  # needs 1, keeps 1
        return None
    return round_to(total, bias.dtype)
