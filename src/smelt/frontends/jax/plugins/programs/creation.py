"""Lower primitives that create arrays without reading any elements: iota, dims, empty arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers

FOLDED = 1 << 16
"""The largest iota that becomes a constant and not a Range."""

RANGED = (ir.DataType.INT32, ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.DOUBLE)


def counted(cx: Lowering, size: Dim, dtype: np.dtype) -> ir.Value:
    """Return the int vector ``0, 1, ..., size - 1`` of type ``dtype``."""
    if not is_symbolic(size) and size <= FOLDED:
        return cx.constant(np.arange(int(size)).astype(dtype))
    target = ir.DataType.from_numpy(dtype)
    kind = target if target in RANGED else ir.DataType.INT64
    first, step = (cx.constant(np.asarray(n, kind.numpy())) for n in (0, 1))
    return cx.cast(cx.op("Range", first, cx.dim_scalar(size, kind), step), target)


@lowers("iota", broadcasts=True)
def iota(
    cx: Lowering,
    *dynamic: ir.Value,
    dtype: object,
    shape: Sequence[Dim],
    dimension: int,
    sharding: object,
) -> Operand:
    """Return ``0, 1, ...`` along ``dimension``; the Operand broadcasts over the other dims."""
    size, after = shape[dimension], len(shape) - dimension - 1
    numbers = counted(cx, size, np.dtype(cx.avals_out[0].dtype))
    return Operand(cx.unsqueeze(numbers, range(1, after + 1)), (size, *[1] * after))


@lowers("dim_as_value", broadcasts=True)
def dim_as_value(cx: Lowering, *, dim: Dim) -> Operand:
    """Return the dim as a scalar."""
    return Operand(cx.dim_scalar(dim, np.dtype(cx.avals_out[0].dtype)), ())


@lowers("empty", broadcasts=True)
def empty(cx: Lowering, *, shape: Sequence[Dim], dtype: object, out_sharding: object) -> Operand:
    """Return zeros, as JAX does on CPUs, for elements that are written before they are read."""
    return Operand(cx.constant(np.zeros((), cx.avals_out[0].dtype)), ())


@lowers("empty2", broadcasts=True)
def empty2(cx: Lowering, *, dtype: object, memory_space: object) -> Operand:
    """Return a zero scalar: the residual of a branch of ``cond`` that was not taken."""
    return Operand(cx.constant(np.zeros((), cx.avals_out[0].dtype)), ())
