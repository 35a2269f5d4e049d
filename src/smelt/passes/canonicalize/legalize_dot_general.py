"""Turn ``smelt.DotGeneral`` into MatMul, Gemm, MatMulInteger, Mul or Einsum.

    before   DotGeneral<lhs_contracting=[1], rhs_contracting=[0]>(x[B,8], w[8,16])
    after    MatMul(x, w)

A Transpose puts the left operand in the order [batch, free, contracting] and the right one in the
order [batch, contracting, free], if needed. A Reshape merges dims where MatMul takes one dim. For
complex operands, the right one becomes real matrices first, unless the target computes DotGeneral.

Needs    (1) operands of known dtype and rank; (2) the semiring sum_product.
Keeps    (1) no such DotGeneral: an Einsum replaces it if no Reshape can state the sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import is_constant
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim
from smelt.operators.complex_dot import real_product
from smelt.operators.contracting_order import Side, contracting_order
from smelt.operators.declare import Attributes
from smelt.operators.dot_general import OPERATOR, Groups, groups
from smelt.passes.base import rounding, rule_pass
from smelt.passes.canonicalize.merged_dims import merge_target, split_target, unit_dims_of

INT8, UINT8 = ir.DataType.INT8, ir.DataType.UINT8
BYTES = ((INT8, INT8), (UINT8, UINT8), (INT8, UINT8))
"""Dtypes of operands for which ONNX Runtime's MatMulInteger is right. For uint8 by int8, CPUs with
AVX2 but without VNNI add pairs of products in 16 bits, which saturate."""

GEMM = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@rule(op("DotGeneral", var("lhs"), var("rhs"), domain="smelt"), same_shape=True)
def dot_general(m: Match, b: Builder) -> Replacement:
    """Replace a DotGeneral of the semiring sum_product by ONNX operators."""
    attributes = OPERATOR.attributes_of(m.root)
    if attributes["semiring"] != "sum_product":  # needs 2
        return Miss("ONNX supports the semiring sum_product only")
    if attributes["pairs"]:
        if b.supports("DotGeneral", "smelt"):
            return Miss("the target multiplies complex numbers")
        return _real_product(b, m["lhs"], m["rhs"], attributes)
    result = legalize(b, m["lhs"], m["rhs"], attributes)
    return Miss("the dtype or rank of an operand is unknown") if result is None else result


def _real_product(
    b: Builder, lhs: ir.Value, rhs: ir.Value, attributes: Attributes
) -> ir.Value | Miss:
    """Return a DotGeneral of real numbers that computes one of pairs."""
    if lhs.shape is None or rhs.shape is None or rhs.dtype is None:
        return Miss("the dtype or rank of an operand is unknown")
    matrices, changed = real_product(b, lhs, rhs, attributes)
    given = {name: value for name, value in changed.items() if value not in (None, 0, ())}
    return b.op("DotGeneral", lhs, matrices, domain="smelt", **given)


def legalize(b: Builder, lhs: ir.Value, rhs: ir.Value, attributes: Attributes) -> ir.Value | None:
    """Return the contraction as ONNX nodes; None if a dtype or rank is unknown."""
    if lhs.shape is None or rhs.shape is None or lhs.dtype is None or rhs.dtype is None:  # needs 1
        return None
    parts = _ordered(groups(attributes, len(lhs.shape), len(rhs.shape)), lhs.shape, rhs.shape)
    preferred = attributes["dtype"]
    output = ir.DataType(preferred) if isinstance(preferred, int) else lhs.dtype
    product_dtype = _product_dtype(output)
    if 0 in (*lhs.shape.dims, *rhs.shape.dims):
        return _zeros(b, lhs, rhs, parts, output)
    if not parts.lhs_contracting:
        return b.cast(
            _outer_product(b, b.cast(lhs, product_dtype), b.cast(rhs, product_dtype), parts), output
        )
    plan = _plan(lhs, rhs, parts)
    if plan is None:  # keeps 1
        results = OPERATOR.body(b, (lhs, rhs), attributes) if OPERATOR.body else None
        return results[0] if results else None
    has_byte_kernel = (lhs.dtype, rhs.dtype) in BYTES and b.supports("MatMulInteger")
    if has_byte_kernel and min(len(lhs.shape), len(rhs.shape)) > 1:
        return b.cast(plan.build(b, "MatMulInteger", lhs, rhs), output)
    lhs, rhs = b.cast(lhs, product_dtype), b.cast(rhs, product_dtype)
    result = _vector_product(b, lhs, rhs, parts) or _gemm(b, lhs, rhs, parts)
    result = result or plan.build(b, "MatMul", lhs, rhs)
    return b.cast(result, output)


def _ordered(parts: Groups, lhs: ir.Shape, rhs: ir.Shape) -> Groups:
    """Return ``parts`` with the contracting dims in the order that moves the fewest elements."""
    sides = Side(lhs.dims, parts.lhs_free), Side(rhs.dims, parts.rhs_free)
    pairs = list(zip(parts.lhs_contracting, parts.rhs_contracting, strict=True))
    order = contracting_order(*sides, pairs)
    left, right = (tuple(pair[side] for pair in order) for side in (0, 1))
    return replace(parts, lhs_contracting=left, rhs_contracting=right)


def _product_dtype(output: ir.DataType) -> ir.DataType:
    """Return the dtype to multiply in, because MatMul supports no integers of fewer than 32 bits.

    Integer sums wrap around, so a sum in more bits, cast back, gives the same result.
    """
    if output.is_floating_point() or output.bitwidth >= 32:
        return output
    return ir.DataType.INT32


def _zeros(
    b: Builder, lhs: ir.Value, rhs: ir.Value, parts: Groups, output: ir.DataType
) -> ir.Value:
    """Return the result for operands with a dim of size 0: a sum of no products is 0."""
    sizes = [b.size(lhs, i) for i in (*parts.lhs_batch, *parts.lhs_free)]
    sizes += [b.size(rhs, i) for i in parts.rhs_free]
    zero = b.constant(np.zeros((), dtype=output.numpy()))
    if not sizes:
        return b.op("Identity", zero)
    return b.op("Expand", zero, sizes[0] if len(sizes) == 1 else b.op("Concat", *sizes, axis=0))


def _outer_product(b: Builder, lhs: ir.Value, rhs: ir.Value, parts: Groups) -> ir.Value:
    """Return each element of ``lhs`` times each of ``rhs`` by a Mul that broadcasts.

    There are no contracting dims, so a MatMul would sum over a dim of size 1.
    """
    left = _transpose(b, lhs, (*parts.lhs_batch, *parts.lhs_free))
    right = _transpose(b, rhs, (*parts.rhs_batch, *parts.rhs_free))
    batch, rows, columns = len(parts.lhs_batch), len(parts.lhs_free), len(parts.rhs_free)
    if columns:
        left = b.op("Unsqueeze", left, b.const_i64(range(batch + rows, batch + rows + columns)))
    if rows and batch:
        right = b.op("Unsqueeze", right, b.const_i64(range(batch, batch + rows)))
    return b.op("Mul", left, right)


def _vector_product(b: Builder, lhs: ir.Value, rhs: ir.Value, parts: Groups) -> ir.Value | None:
    """Return ``MatMul(rhs, lhs)`` if ``rhs`` is a vector and the sum is over the rows of ``lhs``.

    It saves the Transpose of ``lhs``. None for other operands.
    """
    if parts.lhs_batch or parts.rhs_free or parts.lhs_contracting != (0,):
        return None
    return b.op("MatMul", rhs, lhs) if len(parts.lhs_free) == 1 else None


def _gemm(b: Builder, lhs: ir.Value, rhs: ir.Value, parts: Groups) -> ir.Value | None:
    """Return a Gemm if it saves the Transpose of a computed operand, else None."""
    if lhs.dtype not in GEMM or len(parts.lhs_free) != 1 or len(parts.rhs_free) != 1:
        return None
    if parts.lhs_batch or len(parts.lhs_contracting) != 1:
        return None
    is_lhs_transposed = parts.lhs_contracting == (0,)
    is_rhs_transposed = parts.rhs_contracting == (1,)
    saves_lhs = is_lhs_transposed and not is_constant(lhs)
    saves_rhs = is_rhs_transposed and not is_constant(rhs)
    if not saves_lhs and not saves_rhs:
        return None
    return b.op("Gemm", lhs, rhs, transA=int(is_lhs_transposed), transB=int(is_rhs_transposed))


@dataclass(frozen=True)
class Form:
    """Layout change of an operand or of the result: a permutation, then a merge or split of dims.

    ``target`` is the shape of a Reshape, or the axes of a Squeeze or Unsqueeze where a Reshape
    would have to state two unknown sizes.
    """

    perm: tuple[int, ...] = ()
    target: tuple[int, ...] | None = None
    op_type: str = "Reshape"

    def build(self, b: Builder, x: ir.Value) -> ir.Value:
        """Return ``x`` in this layout."""
        moved = _transpose(b, x, self.perm)
        if self.target is None:
            return moved
        return b.op(self.op_type, moved, b.const_i64(self.target))


@dataclass(frozen=True)
class Plan:
    """The layouts with which one matrix product computes the contraction."""

    lhs: Form
    rhs: Form
    result: Form

    def build(self, b: Builder, op_type: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """Return the product, computed by ``op_type``."""
        return self.result.build(b, b.op(op_type, self.lhs.build(b, lhs), self.rhs.build(b, rhs)))


def _plan(lhs: ir.Value, rhs: ir.Value, parts: Groups) -> Plan | None:
    """Return the layouts of operands and result; None if a Reshape would have two unknown sizes.

    For ``x[B,S,h,d]`` times ``w[h,d,n]`` over h and d, they are ``x[B,S,h*d]`` and ``w[h*d,n]``.
    """
    left_perm = (*parts.lhs_batch, *parts.lhs_free, *parts.lhs_contracting)
    right_perm = (*parts.rhs_batch, *parts.rhs_contracting, *parts.rhs_free)
    left, right = _dims(lhs, left_perm), _dims(rhs, right_perm)
    batch_count, contracting_count = len(parts.lhs_batch), len(parts.lhs_contracting)
    left_count, right_count = len(parts.lhs_free), len(parts.rhs_free)
    result = [*left[: batch_count + left_count], *right[batch_count + contracting_count :]]
    # Without batch dims, MatMul supports any number of free dims on the left, and vectors.
    batch = [1] * batch_count
    rows = [1] * left_count if batch_count == 0 else [left_count]
    # ONNX Runtime 1.31 wrongly drops a Transpose before a MatMul with a vector: make it a column.
    keeps_order = left_perm == tuple(sorted(left_perm))
    columns = [] if batch_count == 0 and right_count == 0 and keeps_order else [right_count]
    try:
        return Plan(
            _merged_layout(left_perm, left, [*batch, *rows, contracting_count]),
            _merged_layout(right_perm, right, [*batch, contracting_count, *columns]),
            _split_layout(result, [*batch, *rows, *columns]),
        )
    except ValueError:
        return None


def _merged_layout(perm: tuple[int, ...], dims: Sequence[Dim], counts: Sequence[int]) -> Form:
    """Return the layout permuted by ``perm``, with ``counts[i]`` dims merged into dim ``i``."""
    try:
        return Form(perm, merge_target(dims, counts))
    except ValueError:
        return Form(perm, unit_dims_of(dims, counts), "Squeeze")


def _split_layout(dims: Sequence[Dim], counts: Sequence[int]) -> Form:
    """Return the layout that splits dim ``i`` of the product into ``counts[i]`` of ``dims``."""
    try:
        return Form((), split_target(dims, counts))
    except ValueError:
        return Form((), unit_dims_of(dims, counts), "Unsqueeze")


def _dims(x: ir.Value, perm: Sequence[int]) -> list[Dim]:
    """Return the dims of ``x`` in the order ``perm``."""
    assert x.shape is not None
    return [x.shape[dim] for dim in perm]


def _transpose(b: Builder, x: ir.Value, perm: Sequence[int]) -> ir.Value:
    """Return ``x`` transposed by ``perm``, or ``x`` itself if that changes nothing."""
    order = list(perm)
    return x if order == sorted(order) else b.op("Transpose", x, perm=order)


legalize_dot_general = rule_pass(
    "legalize_dot_general",
    __doc__,
    [dot_general],
    exactness=rounding(16, "sums may be taken in another order"),
    source="XLA DotDecomposer",
)
