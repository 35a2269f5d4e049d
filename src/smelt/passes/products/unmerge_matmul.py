"""Remove the Reshapes that merge batches and heads into one dim around products of an attention.

    before   MatMul(Reshape(a: B,H,M,K to B*H,M,K), Reshape(b: B,H,K,N to B*H,K,N)) * 2
             ─> Softmax ─> Reshape(B,H,M,N) ─> y
    after    MatMul(a, b) * 2 ─> Softmax ─> y

    before   MatMul(Softmax(MatMul(q, k)), v) ─> y: B*H,M,N, with rows M,B,H*N of each operand
             reshaped to M,B*H,N and transposed
    after    MatMul(Softmax(MatMul(q, k)), v) with operands B,H,M,N ─> Reshape(B*H,M,N) ─> y

Models written with ``torch.bmm`` and ``torch.baddbmm``, which require rank 3, merge and split the
dims around each product of an attention; ``nn.MultiheadAttention`` writes the last form. Between
the Reshapes there may be Transposes of the last two dims, a Softmax over the last dim, and
elementwise operators with numbers, constants, or values B*H,M,N. The merged values and the result
may have dims of 1 in between (TensorFlow's einsums).

Needs    (1) the same first two dims, proved, for all merged values and the result; (2) unchanged
         last two dims; (3) for other operands, sizes that are numbers or dims of inputs; (4) in
         the last form, opset 15 and a constant count of heads.
Keeps    (1) merged values with other readers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.walk import Walk, producer_of
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.products.rows_first import rows_first
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape
from smelt.passes.size_from_inputs import shape_from_inputs

PARTS_OF_SHAPE = 15
"""The first opset whose Shape can return some of the dims."""

MOST_DIMS = 8
"""Limit of the rank of merged values, dims of 1 included."""

MOST_NODES = 10
"""Limit of nodes between the last Reshape and those that merge; longer chains are not followed."""

_BY_ELEMENT = ("Add", "Sub", "Mul", "Div", "Max", "Min")


@rule(op("Reshape", var("merged"), rest=True), needs=("MatMul",))
def unmerged_product(m: Match, b: Builder) -> Replacement:
    """Rebuild the product and its neighbours with batches and heads as separate dims."""
    result, merged = m.root.outputs[0].shape, m["merged"].shape
    if producer_of(m["merged"], "MatMul", "Softmax", *_BY_ELEMENT) is None:
        return None
    unit_dims = _unit_dims(result, merged)
    if result is None or unit_dims is None:
        return None
    lift = _Lift(m, b, [dim for axis, dim in enumerate(result.dims) if axis not in unit_dims][:2])
    if not lift.can_rebuild(m["merged"]) or not lift.has_product:  # needs 1, 2
        return None
    if refusal := m.replaces(lift.walk):  # keeps 1
        return refusal
    lifted = lift.rebuild(m["merged"])
    if lifted is None:
        return Miss("no input determines a size of the unmerged result")  # needs 3
    return b.op("Unsqueeze", lifted, b.const_i64(unit_dims)) if unit_dims else lifted


@rule(op("MatMul", op("Softmax", var("scores"), rest=True), var("v")))
def product_of_rows(m: Match, b: Builder) -> Replacement:
    """Rebuild an attention of merged heads with four dims, whose values are rows S,B,H*D."""
    rows, shape = rows_first(m["v"]), m.root.outputs[0].shape
    if rows is None or shape is None or m.opset < PARTS_OF_SHAPE:  # needs 4
        return None
    batch = b.size(rows.source, 1)
    lift = _Lift(m, b, [rows.batch, rows.heads], batch)
    if not lift.can_rebuild(m.root.outputs[0]):  # needs 1, 2
        return Miss("an operand is not merged from the same number of heads")
    if refusal := m.replaces(lift.walk):  # keeps 1
        return refusal
    lifted = lift.rebuild(m.root.outputs[0])
    if lifted is None:
        return Miss("no input determines a size of an operand")
    sizes = constant_shape(lifted.shape, shape)
    if sizes is not None:
        return b.op("Reshape", lifted, b.const_i64(sizes))
    count = b.op("Mul", batch, b.const_i64([rows.heads]))
    target = b.op("Concat", count, b.op("Shape", lifted, start=2), axis=0)
    return b.op("Reshape", lifted, target, allowzero=1)


def _unit_dims(
    split: ir.Shape | None, merged: ir.Shape | None, lead: Sequence[Dim] | None = None
) -> tuple[int, ...] | None:
    """Return the dims of 1 to drop from ``split`` so that B,H,M,N remain; None if no choice leaves
    these.

    ``merged`` ends in the same M,N; ``lead``, if given, is B,H.
    """
    if split is None or merged is None or len(merged) != 3 or not 4 <= len(split) <= MOST_DIMS:
        return None
    ones = [axis for axis, dim in enumerate(split.dims) if dim == 1]
    for axes in combinations(ones, len(split) - 4):
        dims = [dim for axis, dim in enumerate(split.dims) if axis not in axes]
        has_lead = lead is None or all(map(same_dim, dims[:2], lead))
        if has_lead and all(map(same_dim, dims[2:], merged.dims[1:])):
            return axes
    return None


class _Lift:
    """Rebuilds values of dims B*H,M,N, and the nodes that compute them, with the dims B,H,M,N.

    ``lead``: B and H. ``batch``: B as a tensor of one element, if a rule has it. ``walk``: the
    nodes that are rebuilt. ``rebuilt``: the results so far, by value.
    """

    def __init__(
        self, m: Match, b: Builder, lead: list[Dim], batch: ir.Value | None = None
    ) -> None:
        """Rebuild nodes of the match ``m`` by ``b``, with ``lead`` in place of one merged dim."""
        self.m = m
        self.b = b
        self.lead = lead
        self.batch = batch
        self.walk: Walk = m.walk()
        self.has_product = False
        self.rebuilt: dict[ir.Value, ir.Value] = {}

    def before_merge(self, value: ir.Value) -> tuple[ir.Value, tuple[int, ...]] | None:
        """Return the source of the Reshape that merges ``value``, and its dims of 1 to drop, else
        None."""
        node = producer_of(value, "Reshape")
        source = node.inputs[0] if node is not None else None
        if source is None:
            return None
        axes = _unit_dims(source.shape, value.shape, self.lead)
        return (source, axes) if axes is not None else None

    def split(self, value: ir.Value) -> ir.Value | None:
        """Return ``value`` with four dims, as it was before the merge, else None."""
        rows = rows_first(value)
        if rows is not None and rows.fits(self.lead):
            return rows.split(self.b)
        source_and_axes = self.before_merge(value)
        if source_and_axes is None:
            return None
        source, unit_dims = source_and_axes
        return self.b.op("Squeeze", source, self.b.const_i64(unit_dims)) if unit_dims else source

    def can_rebuild(self, value: ir.Value | None, depth: int = 0) -> bool:
        """True if ``value`` is merged, or computed from merged values by operators that work on
        split dims, too.

        ``walk`` records the nodes on the way, ``has_product`` whether one is a MatMul; ``depth``
        counts them.
        """
        if value is None or value.shape is None or len(value.shape) != 3 or depth > MOST_NODES:
            return False
        rows = rows_first(value)
        if self.before_merge(value) is not None or (rows is not None and rows.fits(self.lead)):
            return True
        node = self.walk.up(value, "MatMul", "Transpose", "Softmax", *_BY_ELEMENT)
        if node is None:
            return False
        if node.op_type == "MatMul":
            self.has_product = True
            return all(self.can_rebuild(operand, depth + 1) for operand in node.inputs)
        if node.op_type == "Transpose":
            return permutation(node) == (0, 2, 1) and self.can_rebuild(node.inputs[0], depth + 1)
        if node.op_type == "Softmax":
            axis = opset.attribute(node, "axis", self.m.opset)
            return (
                self.m.opset >= 13
                and axis in (-1, 2)
                and self.can_rebuild(node.inputs[0], depth + 1)
            )
        carried = self.operand_with_merged_dims(node)
        return carried is not None and self.can_rebuild(carried, depth + 1)

    def operand_with_merged_dims(self, node: ir.Node) -> ir.Value | None:
        """Return the operand of an elementwise ``node`` by which to go on to the merged values.

        The other operand is a number, or has the same first dim or 1 there: ``other_operand`` gives
        it four dims. None if neither operand is such.
        """
        if len(node.inputs) != 2 or None in node.inputs:
            return None
        for carried, other in (node.inputs, node.inputs[::-1]):
            assert carried is not None
            assert other is not None
            is_number = self.m.scalar(other) is not None
            move_types = ("Transpose", "Reshape") if is_number else ()
            if producer_of(carried, "MatMul", "Softmax", *_BY_ELEMENT, *move_types) is None:
                continue
            if is_number or self.has_first_dim(other, carried):
                return carried
        return None

    def has_first_dim(self, other: ir.Value, carried: ir.Value) -> bool:
        """True if both have rank 3 and the first dim of ``other`` is 1 or that of ``carried``."""
        shapes = (other.shape, carried.shape)
        if other.shape is None or carried.shape is None or {len(s or ()) for s in shapes} != {3}:
            return False
        return other.shape[0] == 1 or same_dim(other.shape[0], carried.shape[0])

    def rebuild(self, value: ir.Value) -> ir.Value | None:
        """Return ``value`` with four dims; None if this needs a size that no input determines."""
        if value not in self.rebuilt:
            lifted = self.split(value) or self._rebuilt_producer(value)
            if lifted is None:
                return None
            self.rebuilt[value] = lifted
        return self.rebuilt[value]

    def _rebuilt_producer(self, value: ir.Value) -> ir.Value | None:
        """Return the result of the producer of ``value``, rebuilt on operands with four dims; None
        if one of them cannot be split.
        """
        node = value.producer()
        assert node is not None
        carried = self.operand_with_merged_dims(node) if node.op_type in _BY_ELEMENT else None
        operands = [
            self.rebuild(x) if carried is None or x is carried else self.other_operand(x)
            for x in node.inputs
            if x is not None
        ]
        if None in operands:
            return None
        if node.op_type == "Transpose":
            return self.b.op("Transpose", *operands, perm=[0, 1, 3, 2])
        if node.op_type == "Softmax":
            return self.b.op("Softmax", *operands, axis=-1)
        return self.b.like(node, *operands)

    def other_operand(self, value: ir.Value) -> ir.Value | None:
        """Return an operand other than the ``carried`` one with four dims; None if it cannot be
        reshaped.

        It is a number, or has the dims B*H,M,N or 1,M,N.
        """
        number = self.m.scalar(value)
        array = self.m.array(value, limit=None)
        if number is not None and array is not None:
            return self.b.constant(array.reshape(()))
        source = self.split(value)
        if source is not None:
            return source
        assert value.shape is not None
        if value.shape[0] == 1:
            return self.b.op("Unsqueeze", value, self.b.const_i64([0]))
        dims = [*self.lead, *value.shape.dims[1:]]
        sizes = constant_shape(value.shape, ir.Shape(dims))
        if sizes is not None:
            return self.b.op("Reshape", value, self.b.const_i64(sizes))
        return self.reshaped(value, dims) if self.m.opset >= PARTS_OF_SHAPE else None

    def reshaped(self, value: ir.Value, dims: list[Dim]) -> ir.Value | None:
        """Return ``value``, B*H,M,N, reshaped to B,H,M,N by sizes that inputs or values tell; None
        if a size is unknown.
        """
        target = shape_from_inputs(dims, self.b.graph, self.b)
        if target is None and self.batch is not None and isinstance(self.lead[1], int):
            matrix = self.b.op("Shape", value, start=1)
            heads = self.b.const_i64([self.lead[1]])
            target = self.b.op("Concat", self.batch, heads, matrix, axis=0)
            return self.b.op("Reshape", value, target, allowzero=1)
        return self.b.op("Reshape", value, target) if target is not None else None


unmerge_matmul = rule_pass(
    "unmerge_matmul",
    __doc__,
    [unmerged_product, product_of_rows],
    exactness=EXACT,
    before=("fuse_attention",),
)
