"""Lowers MatMul, MatMulInteger and Gemm to DotGeneral, and what is left of them to Transpose, Mul
and Add.

Dims get labels, as in an einsum: a MatMul is ``b1 m k, b1 k n -> b1 m n``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import same_dim
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

SUM_PRODUCT = "sum_product"


@dataclass(frozen=True)
class Labelled:
    """A slot whose dims have labels, as in an einsum; dims with equal labels have equal sizes."""

    slot: int
    labels: tuple[str, ...]


@lowers("MatMul")
def matmul(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a MatMul as a DotGeneral; see ``product_to``."""
    lhs, rhs = (cx.slot(value) for value in node.inputs)
    product_to(cx, lhs, rhs, node.outputs[0])


@lowers("MatMulInteger")
def matmul_integer(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a MatMul of 32-bit integers; products and sums of bytes are exact or wrap."""
    if cx.emit_if_supported(node):
        return
    lhs, rhs = (cx.slot(value) for value in node.inputs[:2])
    lhs = shifted(cx, lhs, cx.input(node, 2), rows=True)
    rhs = shifted(cx, rhs, cx.input(node, 3), rows=False)
    product_to(cx, lhs, rhs, node.outputs[0])


def shifted(cx: ProgramBuilder, operand: int, zero: ir.Value | None, *, rows: bool) -> int:
    """Return the slot of ``operand - zero`` in 32 bits.

    The zero point is one number, or a vector with one for each row (with ``rows``) or column. A
    vector for rows is reshaped to a column.
    """
    shape, widened_type = cx.shape(operand), ir.DataType.INT32
    x = cx.emit_new("Cast", (operand,), shape, dtype=widened_type, saturate=1)
    if zero is None:
        return x
    point = cx.slot(zero)
    sizes = cx.shape(point)
    if rows and len(sizes) == 1 and sizes[0] != 1 and len(shape) > 1:
        point = cx.emit_new("Reshape", (point,), (sizes[0], 1))
        sizes = cx.shape(point)
    point = cx.emit_new("Cast", (point,), sizes, dtype=widened_type, saturate=1)
    return cx.emit_new("Sub", (x, point), shape)


def product_to(cx: ProgramBuilder, lhs: int, rhs: int, output: ir.Value | int) -> None:
    """Emit a MatMul as one DotGeneral into ``output``, a value or a slot.

    For operands of rank 4, the labels are b2, b1, m, k and b2, b1, k, n; a vector has only k.
    Batch dims align from the back. A batch dim of size 1 that broadcasts is dropped, which makes
    that dim of the other operand a free dim.
    """
    lhs_rank, rhs_rank = len(cx.shape(lhs)), len(cx.shape(rhs))
    if lhs_rank == 0 or rhs_rank == 0:
        raise cx.refuse("MatMul takes no operand of rank 0")
    # Batch labels count from the back: b1 is the innermost.
    lhs_labels = [f"b{i - 2}" for i in range(lhs_rank, 2, -1)] + ["m", "k"][-min(lhs_rank, 2) :]
    rhs_labels = [f"b{i - 2}" for i in range(rhs_rank, 2, -1)] + ["k", "n"][: min(rhs_rank, 2)]
    batch = lhs_labels[:-2] if lhs_rank >= rhs_rank else rhs_labels[:-2]
    result_labels = [*batch, *(["m"] if lhs_rank > 1 else []), *(["n"] if rhs_rank > 1 else [])]
    left, right = Labelled(lhs, tuple(lhs_labels)), Labelled(rhs, tuple(rhs_labels))
    for label in [label for label in lhs_labels[:-2] if label in rhs_labels]:
        dims = cx.shape(output) if isinstance(output, int) else (output.shape or ())
        left, right = _drop_broadcast(cx, left, right, label, dims[result_labels.index(label)])
    dot_to(cx, left, right, result_labels, output)


def _drop_broadcast(
    cx: ProgramBuilder, a: Labelled, b: Labelled, label: str, result_size: Dim
) -> tuple[Labelled, Labelled]:
    """Return ``a`` and ``b`` such that the batch dim ``label`` of both needs no broadcast.

    If one of them has size 1 there and the other has not, the dim of size 1 is dropped. If open
    sizes do not tell which, both operands are expanded to ``result_size``.
    """
    x, y = _size(cx, a, label), _size(cx, b, label)
    if same_dim(x, y):
        return a, b
    if x == 1:
        return _drop(cx, a, label), b
    if y == 1:
        return a, _drop(cx, b, label)
    if isinstance(result_size, ir.SymbolicDim) and result_size.value is None:
        raise cx.refuse_size(f"batch dims {x} and {y} are not known to be equal")
    return _expanded(cx, a, label, y, result_size), _expanded(cx, b, label, x, result_size)


def _expanded(
    cx: ProgramBuilder, operand: Labelled, label: str, other: Dim, result_size: Dim
) -> Labelled:
    """Return ``operand`` broadcast along ``label`` against a dim of size ``other``."""
    dim, shape = operand.labels.index(label), list(cx.shape(operand.slot))
    if same_dim(shape[dim], result_size):
        return operand
    shape[dim] = result_size
    against: list[Dim] = [1] * len(shape)
    against[dim] = other
    slot = cx.emit_new("Expand", (operand.slot,), tuple(shape), against=tuple(against))
    return Labelled(slot, operand.labels)


def _size(cx: ProgramBuilder, operand: Labelled, label: str) -> Dim:
    """Return the size of the dim of ``operand`` that has ``label``."""
    return cx.shape(operand.slot)[operand.labels.index(label)]


def _drop(cx: ProgramBuilder, operand: Labelled, label: str) -> Labelled:
    """Return ``operand`` without the dim of size 1 that has ``label``."""
    dim = operand.labels.index(label)
    shape = cx.shape(operand.slot)
    slot = cx.emit_new("Reshape", (operand.slot,), (*shape[:dim], *shape[dim + 1 :]))
    return Labelled(slot, operand.labels[:dim] + operand.labels[dim + 1 :])


def dot_to(
    cx: ProgramBuilder,
    a: Labelled,
    b: Labelled,
    out: Sequence[str],
    output: ir.Value | int,
) -> None:
    """Emit one DotGeneral of ``a`` and ``b`` whose result has its dims in the order ``out``."""
    target = output if isinstance(output, int) else cx.define(output)
    dims, labels = _dims(a, b, out)
    if labels == tuple(out):
        cx.emit("DotGeneral", (a.slot, b.slot), (target,), semiring=SUM_PRODUCT, dims=dims)
        return
    result = _dot(cx, a, b, out)
    perm = tuple(result.labels.index(label) for label in out)
    cx.emit("Transpose", (result.slot,), (target,), perm=perm)


def _dims(a: Labelled, b: Labelled, kept_labels: Sequence[str]) -> tuple[DotDims, tuple[str, ...]]:
    """Return the dimension numbers of a DotGeneral of ``a`` and ``b``, and the labels of its
    result.

    Shared labels in ``kept_labels`` are batch dims; the other shared labels are contracted.
    """
    shared_labels = [label for label in a.labels if label in b.labels]
    batch = [label for label in kept_labels if label in shared_labels]
    summed = [label for label in shared_labels if label not in kept_labels]
    dims = DotDims(
        tuple(a.labels.index(label) for label in summed),
        tuple(b.labels.index(label) for label in summed),
        tuple(a.labels.index(label) for label in batch),
        tuple(b.labels.index(label) for label in batch),
    )
    free = [label for label in (*a.labels, *b.labels) if label not in shared_labels]
    return dims, (*batch, *free)


def _dot(cx: ProgramBuilder, a: Labelled, b: Labelled, kept_labels: Sequence[str]) -> Labelled:
    """Emit the DotGeneral that ``_dims`` describes; return its slot with its labels."""
    dims, labels = _dims(a, b, kept_labels)
    sizes = dict(zip(b.labels, cx.shape(b.slot), strict=True))
    sizes |= dict(zip(a.labels, cx.shape(a.slot), strict=True))
    shape = [sizes[label] for label in labels]
    args = (a.slot, b.slot)
    slot = cx.emit_new("DotGeneral", args, shape, dims=dims, semiring=SUM_PRODUCT)
    return Labelled(slot, labels)


@lowers("Gemm")
def gemm(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ``alpha * op(A) @ op(B) + beta * C``; a beta of 0 omits C, as runtimes do."""
    lhs, rhs = cx.slot(node.inputs[0]), cx.slot(node.inputs[1])
    trans_a, trans_b = node.attributes.get_int("transA", 0), node.attributes.get_int("transB", 0)
    alpha, beta = node.attributes.get_float("alpha", 1.0), node.attributes.get_float("beta", 1.0)
    bias = cx.input(node, 2) if beta != 0 else None
    dtype = cx.dtype(lhs)
    if not dtype.is_floating_point() and (alpha != 1 or (bias is not None and beta != 1)):
        raise cx.refuse("alpha and beta other than 1 need floating-point operands")
    dims = DotDims((0 if trans_a else 1,), (1 if trans_b else 0,))
    output = cx.define(node.outputs[0])
    shape = cx.shape(output)
    scaled = alpha != 1
    args = (lhs, rhs)
    if not scaled and bias is None:
        cx.emit("DotGeneral", args, (output,), dims=dims, semiring=SUM_PRODUCT)
        return
    dot = cx.emit_new("DotGeneral", args, shape, dims=dims, semiring=SUM_PRODUCT)
    if scaled and bias is None:
        cx.emit("Mul", (dot, _number(cx, alpha, dtype)), (output,))
        return
    if scaled:
        dot = cx.emit_new("Mul", (dot, _number(cx, alpha, dtype)), shape)
    addend = cx.slot(bias)
    if beta != 1:
        addend = cx.emit_new("Mul", (addend, _number(cx, beta, dtype)), cx.shape(addend))
    cx.emit("Add", (dot, addend), (output,))


def _number(cx: ProgramBuilder, value: float, dtype: ir.DataType) -> int:
    """Return the slot of the constant ``value`` in ``dtype``."""
    return cx.constant(np.asarray(value, dtype=dtype.numpy()), "factor")
