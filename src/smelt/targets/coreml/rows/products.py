"""Rows for MatMul and Gemm, and matrix products for other rows."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.half_constants import LARGEST_HALF
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Dims, Val, broadcast


@writes("MatMul")
def matmul(c: Call) -> None:
    """Write linear for floats by a constant matrix, else matmul; vectors become matrices first."""
    x, weight = c.x(0), c.array(1)
    if weight is not None and weight.ndim == 2 and x.is_float and x.rank in (2, 3):
        added = _added(c, x, weight.shape[1])
        bias = None if added is None else added[1]
        result = linear(c, x, _transposed(c, weight), bias)
        c.done(result)
        if added is not None:
            c.facts.scope.add(added[0], result)
        return
    y = c.x(1)
    left, right = x.rank == 1, y.rank == 1
    if left:
        x = c.expand(x, [0])
    if right:
        y = c.expand(y, [1])
    result = product(c, x, y)
    if right:
        result = c.squeeze(result, [-1])
    c.done(c.squeeze(result, [-1 if right else -2]) if left else result)


def _added(c: Call, x: Val, count: int) -> tuple[ir.Value, np.ndarray] | None:
    """Return the sum of this product and a constant vector, and the vector.

    None if anything else reads the product, if the sum has another precision, or if it is a mask.
    """
    product = c.node.outputs[0]
    reader = next(iter(scope.consumers(product)), None) if scope.has_one_use(product) else None
    if c.facts.dry or reader is None or reader.op_type != "Add" or reader.domain:
        return None
    if reader.graph is not c.node.graph or c.facts.keeps(reader) != c.facts.keeps(c.node):
        return None
    other = reader.inputs[1 if reader.inputs[0] is product else 0]
    bias = c.facts.constants.get(other, limit=None)
    if bias is None or bias.shape != (count,):
        return None
    if x.element == Element.FLOAT16 and not (np.abs(bias) <= LARGEST_HALF).all():
        return None
    return reader.outputs[0], bias


def _transposed(c: Call, weight: np.ndarray) -> np.ndarray:
    """Return the transpose of a weight, contiguous in memory."""
    return np.ascontiguousarray(weight.T)


def product(
    c: Call, x: Val, y: Val, *, transpose_x: bool = False, transpose_y: bool = False
) -> Val:
    """Return ``x @ y`` with broadcasting, where each operand may be transposed first."""
    rows = x.dims[-1 if transpose_x else -2]
    columns = y.dims[-2 if transpose_y else -1]
    dims: Dims = (*broadcast(x.dims[:-2], y.dims[:-2]), rows, columns)
    label = f"{c.node.outputs[0].name}_matmul"
    return c.w.op(
        "matmul",
        x.element,
        dims,
        name=label,
        x=x,
        y=y,
        transpose_x=transpose_x,
        transpose_y=transpose_y,
    )


def linear(c: Call, x: Val, weight: np.ndarray | Val, bias: np.ndarray | None) -> Val:
    """Return ``x @ weight.T + bias``; ``weight`` has the shape (outputs, inputs).

    A weight that is a ``Val`` is a packed one. A missing ``bias`` is 0.
    """
    label = f"{c.node.outputs[0].name}_weight"
    matrix = weight if isinstance(weight, Val) else c.constant(weight, x.element, label)
    count = matrix.dims[0]
    if bias is None:
        bias = np.zeros(count or 0, np.float32)
    return c.w.op(
        "linear",
        x.element,
        (*x.dims[:-1], count),
        name=c.node.outputs[0].name or "linear",
        x=x,
        weight=matrix,
        bias=c.constant(bias, x.element, f"{c.node.outputs[0].name}_bias"),
    )


@writes("Gemm")
def gemm(c: Call) -> None:
    """Write ``alpha * a @ b + beta * c``.

    With constant b and c it is linear, and the factors are multiplied into both. Else it is matmul,
    mul and add.
    """
    alpha, beta = float(c.attribute("alpha")), float(c.attribute("beta"))
    transpose_x, transpose_y = bool(c.attribute("transA")), bool(c.attribute("transB"))
    x, weight = c.x(0), c.array(1)
    bias = c.array(2) if c.has(2) else np.zeros(1, np.float32)
    if x.is_float and weight is None and c.is_weight(1) and transpose_y and not transpose_x:
        matrix, count = c.x(1), c.dims(c.input(1))[0]
        if count is not None and alpha == beta == 1 and bias is not None and bias.ndim == 1:
            c.done(linear(c, x, matrix, np.broadcast_to(bias, (count,))))
            return
    if x.is_float and weight is not None and bias is not None and not transpose_x:
        count = weight.shape[0 if transpose_y else 1]
        if bias.size in (1, count) and (bias.ndim < 2 or bias.shape[0] == 1):
            weight = weight if transpose_y else _transposed(c, weight)
            weight = weight if alpha == 1 else weight * weight.dtype.type(alpha)
            flat = np.broadcast_to(bias.reshape(-1), (count,))
            c.done(linear(c, x, weight, flat if beta == 1 else flat * bias.dtype.type(beta)))
            return
    result = product(c, x, c.x(1), transpose_x=transpose_x, transpose_y=transpose_y)
    if alpha != 1:
        result = c.op("mul", result, alpha if x.is_float else int(alpha))
    if c.has(2) and beta != 0:
        added = c.x(2)
        if beta != 1:
            added = c.op("mul", added, beta if x.is_float else int(beta))
        result = c.op("add", result, added)
    c.done(result)
