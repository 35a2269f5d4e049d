"""``FusedMatMul``: a matrix product with transposes and a factor."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attributes, Computed, Result
from smelt.operators.inputs import first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator


def _order(rank: int, attributes: Attributes, side: str) -> list[int]:
    """Return the axes of an operand in the order of the product; vectors are never transposed."""
    order = list(range(rank))
    if rank > 1 and attributes[f"transBatch{side}"]:  # moves the first axis before the last
        order = [*order[1:-1], order[0], order[-1]]
    if rank > 1 and attributes[f"trans{side}"]:  # swaps the last two
        order = [*order[:-2], order[-1], order[-2]]
    return order


def broadcast_dims(*stacks: Sequence[Dim]) -> list[Dim]:
    """Return the dims to which the batch dims ``stacks`` broadcast; unknown where symbols
    differ."""
    dims: list[Dim] = []
    for column in zip_longest(*(stack[::-1] for stack in stacks), fillvalue=1):
        sizes = {dim for dim in column if not (isinstance(dim, int) and dim == 1)}
        numbers = [dim for dim in sizes if isinstance(dim, int)]
        if not sizes:
            dims.append(1)
        elif len(sizes) == 1:
            dims.extend(sizes)
        else:
            dims.append(numbers[0] if numbers else ir.SymbolicDim(None))
    return dims[::-1]


def infer_product(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of a MatMul of the transposed operands."""
    a, b = first(inputs), input_at(inputs, 1)
    if b is None or a.shape is None or b.shape is None:
        return (Result(a.dtype, None),)
    lhs = [a.shape[axis] for axis in _order(len(a.shape), attributes, "A")]
    rhs = [b.shape[axis] for axis in _order(len(b.shape), attributes, "B")]
    if not lhs or not rhs:
        raise ValueError("a product takes no scalar")
    row_size = lhs[-1]
    column_size = rhs[-2] if len(rhs) > 1 else rhs[0]
    are_known = isinstance(row_size, int) and isinstance(column_size, int)
    if are_known and row_size != column_size:
        raise ValueError(f"rows of {row_size} meet columns of {column_size}")
    dims = [*broadcast_dims(lhs[:-2], rhs[:-2]), *lhs[-2:-1]]
    if len(rhs) > 1:
        dims.append(rhs[-1])
    return (Result(a.dtype, ir.Shape(dims)),)


def product(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the scaled product of the transposed operands."""
    a, b = present(inputs)
    lhs = a.transpose(_order(a.ndim, attributes, "A"))
    rhs = b.transpose(_order(b.ndim, attributes, "B"))
    return ((np.matmul(lhs, rhs) * attributes["alpha"]).astype(a.dtype),)


def product_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Build transposes, the product, and the factor if it is not 1."""
    operands = []
    for value, side in zip(inputs, "AB", strict=True):
        assert value is not None
        assert value.shape is not None
        order = _order(len(value.shape), attributes, side)
        is_transposed = order != sorted(order)
        operands.append(b.op("Transpose", value, perm=order) if is_transposed else value)
    result, alpha = b.op("MatMul", *operands), attributes["alpha"]
    assert isinstance(alpha, int | float)
    return (result if alpha == 1 else b.op("Mul", result, b.const_like(alpha, result)),)


FUSED_MATMUL = operator(
    "FusedMatMul",
    "a product of operands that are transposed first, times a factor",
    inputs=("A", "B"),
    outputs=("Y",),
    attributes=(*ints(transA=0, transB=0, transBatchA=0, transBatchB=0), *floats(alpha=1.0)),
    infer=infer_product,
    reference=product,
    body=product_body,
)


OPERATORS = (FUSED_MATMUL,)
