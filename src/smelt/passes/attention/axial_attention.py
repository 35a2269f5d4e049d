"""The rule for attention along one of two axes, such as rows, columns, blocks or windows.

    before   q, k, v: A,B,S,H,D, heads first by Transpose<perm=[0, 1, 3, 2, 4]>, scores A,B,H,S,S
    after    the same for A*B,S,H,D, heads first by Transpose<perm=[0, 2, 1, 3]>, scores A*B,H,S,S

    before   q, k, v: A,S,B,H,D, heads first by Transpose<perm=[0, 3, 2, 1, 4]> (Hiera)
    after    Transpose<perm=[0, 2, 1, 3, 4]>, then the same

The result becomes one ``Attention`` of A*B sequences that splits the heads itself, without the
Transposes (axial attention, Ho et al. 2019; blocks of LongT5). A bias is shared by all A and B, or
has one entry for each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.bounds import possibly_zero_symbols
from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, is_positive, same_dim
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.ir.walk import producer_of
from smelt.passes.first_opsets import opset_miss
from smelt.passes.size_from_inputs import size_from_inputs

NEXT_TO_SEQUENCE, SEQUENCE_FIRST = (0, 1, 3, 2, 4), (0, 3, 2, 1, 4)
"""Permutations that move heads before the sequence, of A,B,S,H,D and of A,S,B,H,D; each is its own
inverse."""

KEYS: dict[tuple[int, ...], tuple[int, ...]] = {
    NEXT_TO_SEQUENCE: (0, 1, 3, 4, 2),
    SEQUENCE_FIRST: (0, 3, 2, 4, 1),
}
"""The same permutations for keys, whose sequence goes last."""


def _attention(perm: tuple[int, ...]) -> OneOf:
    """Match attention whose operands are transposed by ``perm``."""
    product = op(
        "MatMul",
        op("Transpose", var("q"), perm=perm),
        op("Transpose", var("k"), perm=KEYS[perm]),
        name="scores",
    )
    scaled = one_of(
        op("Mul", product, const(), commutative=True, name="scaled"),
        op("Div", product, const(), name="scaled"),
        product,
    )
    biased = one_of(op("Add", scaled, var("bias"), commutative=True), scaled)
    weights = op("Softmax", biased, name="weights")
    mixed = op("MatMul", weights, op("Transpose", var("v"), perm=perm))
    name = "next_to" if perm == NEXT_TO_SEQUENCE else "first"
    return one_of(op("Reshape", op("Transpose", mixed, perm=perm, name=name), rest=True))


@rule(one_of(_attention(NEXT_TO_SEQUENCE), _attention(SEQUENCE_FIRST)))
def axial_attention(m: Match, b: Builder) -> Replacement:
    """Replace attention with two batch axes by attention with one, in plain operators.

    ``fuse_attention`` then matches those operators and makes an Attention of them.
    """
    operands = [_batches_first(m[name], m, b) for name in ("q", "k", "v")]
    shapes = [value.shape.dims for value in operands if value.shape is not None]
    result = m.root.outputs[0].shape
    if len(shapes) < 3 or result is None:
        return None
    unfit = _unfit(shapes, m, b)
    if unfit is not None:
        return unfit
    q, _, v = shapes
    bias = m.get("bias")
    batched_bias = _batched_bias(bias, q[:2], m, b) if bias is not None else None
    if isinstance(batched_bias, Miss):
        return batched_bias
    batched = [_joined_batches(x, dims, b) for x, dims in zip(operands, shapes, strict=True)]
    batched_operands = [value for value in batched if value is not None]
    if len(batched_operands) < 3:
        return Miss("no input determines the length of a sequence")
    if early := opset_miss(m, "Attention"):
        return early
    split_dims = [*q[:3], _width(v)]
    merged = _reshaped(
        _plain_attention(batched_operands, batched_bias, m, b),
        [dim_product(q[:2]), *split_dims[2:]],
        b,
    )
    if merged is not None and m.get("first") is not None:
        merged = _reshaped(merged, split_dims, b)
        merged = b.op("Transpose", merged, perm=[0, 2, 1, 3]) if merged is not None else None
    y = _reshaped(merged, result, b) if merged is not None else None
    return y if y is not None else Miss("no input determines the sizes of the result")


def _unfit(shapes: Sequence[Sequence[Dim]], m: Match, b: Builder) -> Miss | None:
    """Return a Miss if queries, keys and values A,B,S,H,D do not fit one ``Attention``."""
    q, k, v = shapes
    if opset.attribute(m.node("weights"), "axis", m.opset) not in (-1, 4):
        return Miss("the axis of the Softmax is not the last axis (the keys)")
    if not all(x is m["scores"] or _lacks_batch_axes(x) for x in _scaled_operands(m)):
        return Miss("a constant that scales the scores has rank 4 or more")
    empty = possibly_zero_symbols(b.model.graph)
    if not all(is_positive(dim, empty) for dims in shapes for dim in dims):
        return Miss("a size may be 0, and runtimes support no empty attention")
    equal_axes = ((q, k, (0, 1, 3, 4)), (k, v, (0, 1, 2, 3)))
    if not all(same_dim(x[i], y[i]) for x, y, axes in equal_axes for i in axes):
        return Miss("batch sizes, head counts or key counts of the operands are not proved equal")
    if not all(isinstance(dims[3], int) for dims in shapes):
        return Miss("the head count is not constant")
    if not all(isinstance(dims[4], int) for dims in shapes):
        return Miss("the head size is not constant")
    return None


def _scaled_operands(m: Match) -> Sequence[ir.Value | None]:
    """Return the operands of the scaling of the scores; () if they are not scaled."""
    return m.node("scaled").inputs if m.get("scaled") is not None else ()


def _lacks_batch_axes(value: ir.Value | None) -> bool:
    """True if ``value`` has no axis for A or B when it broadcasts to scores A,B,H,S,S."""
    return value is not None and value.shape is not None and len(value.shape) < 4


def _batches_first(value: ir.Value, m: Match, b: Builder) -> ir.Value:
    """Return an operand as A,B,S,H,D; it is A,S,B,H,D if the sequence comes first."""
    return value if m.get("first") is None else b.op("Transpose", value, perm=[0, 2, 1, 3, 4])


def _width(dims: Sequence[Dim]) -> int:
    """Return H*D of the dims A,B,S,H,D; H and D are ints."""
    return math.prod(dim for dim in dims[3:] if isinstance(dim, int))


def _joined_batches(value: ir.Value, dims: Sequence[Dim], b: Builder) -> ir.Value | None:
    """Return A,B,S,H,D as A*B,S,H,D, by way of A*B,S,H*D, which an ``Attention`` reads; None if two
    dims are unknown and no input determines them.
    """
    split = producer_of(value, "Reshape")
    source = split.inputs[0] if split is not None else None
    rows_before_split = source if source is not None else value
    rows = _reshaped(rows_before_split, [dim_product(dims[:2]), dims[2], _width(dims)], b)
    heads = [dim for dim in dims[3:] if isinstance(dim, int)]
    return b.op("Reshape", rows, b.const_i64([0, 0, *heads])) if rows is not None else None


def _plain_attention(
    operands: Sequence[ir.Value], bias: ir.Value | None, m: Match, b: Builder
) -> ir.Value:
    """Return the attention of operands B,S,H,D in plain operators, as B,S,H,D."""
    q, k, v = operands
    heads_first = b.op("Transpose", q, perm=[0, 2, 1, 3])
    scores = b.op("MatMul", heads_first, b.op("Transpose", k, perm=[0, 2, 3, 1]))
    if m.get("scaled") is not None:
        scaled, product = m.node("scaled"), m["scores"]
        scores = b.like(scaled, *(scores if x is product else x for x in scaled.inputs))
    if bias is not None:
        scores = b.op("Add", scores, bias)
    mixed = b.op(
        "MatMul", b.op("Softmax", scores, axis=-1), b.op("Transpose", v, perm=[0, 2, 1, 3])
    )
    return b.op("Transpose", mixed, perm=[0, 2, 1, 3])


def _batched_bias(bias: ir.Value, batches: Sequence[Dim], m: Match, b: Builder) -> ir.Value | Miss:
    """Return a ``bias`` A,B,H,S,S as A*B,H,S,S; a Miss if its dims are unknown or others."""
    shape = bias.shape
    if shape is None:
        return Miss("the rank of the bias is not known")
    if len(shape) < 4:
        return bias
    if len(shape) == 4:
        return bias if shape[0] == 1 else Miss("the bias has rank 4 and a first dim other than 1")
    if len(shape) == 5 and shape[0] == 1 and shape[1] == 1:
        return b.op("Squeeze", bias, b.const_i64([0]))
    if len(shape) > 5:
        return Miss("the rank of the bias is above 5")
    if not all(map(same_dim, shape[:2], batches)):
        return Miss("the first two dims of the bias are neither 1 nor proved to be the batch dims")
    joined = _reshaped(bias, [dim_product(shape[:2]), *shape[2:]], b)
    return joined if joined is not None else Miss("no input determines the sizes of the bias")


def _reshaped(value: ir.Value, dims: Iterable[Dim], b: Builder) -> ir.Value | None:
    """Return ``value``, which is not empty, reshaped to ``dims``.

    None if two dims are unknown and no input determines all but one of them.
    """
    dims = list(dims)
    if sum(not isinstance(dim, int) for dim in dims) <= 1:
        numbers = [dim if isinstance(dim, int) else -1 for dim in dims]
        return b.op("Reshape", value, b.const_i64(numbers))
    open_dims = [axis for axis, dim in enumerate(dims) if not isinstance(dim, int)]
    sizes = [
        b.const_i64([-1]) if axis == open_dims[0] else size_from_inputs(dim, b.graph, b)
        for axis, dim in enumerate(dims)
    ]
    known_sizes = [size for size in sizes if size is not None]
    if len(known_sizes) < len(sizes):
        return None
    return b.op("Reshape", value, b.op("Concat", *known_sizes, axis=0))
