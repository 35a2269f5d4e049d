"""Lower ``x[..., i, ...]``, a ``gather`` of whole rows by one index, as in embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.indexing import indices
from smelt.frontends.jax.plugins.indexing.dynamic_slicing import same_size


def is_take(
    shape: Sequence[Dim], mapped: Sequence[int], numbers: Any, sizes: Sequence[Dim]
) -> bool:
    """True if one dim is indexed and collapsed, and the slices cover every other dim."""
    if len(mapped) != 1 or tuple(numbers.collapsed_slice_dims) != tuple(mapped):
        return False
    other_dims = [dim for dim in range(len(shape)) if dim not in mapped]
    covers_other_dims = all(same_size(shape[dim], sizes[dim]) for dim in other_dims)
    return (
        covers_other_dims and same_size(sizes[mapped[0]], 1) and not numbers.operand_batching_dims
    )


def bounded(
    cx: Lowering, starts: ir.Value, limit: Dim, bounds_mode: str
) -> tuple[ir.Value, ir.Value | None]:
    """Return the index clipped to ``[0, limit)``, and in mode drop a mask of indices in bounds.

    An int32 index stays int32, because runtimes accept both types.
    """
    index = cx.squeeze(starts, [len(cx.avals_in[1].shape) - 1])
    stays_int32 = index.dtype == ir.DataType.INT32 and not is_symbolic(limit) and limit < 2**31
    index = index if stays_int32 else cx.cast(index, ir.DataType.INT64)
    if indices.in_bounds(cx, starts, [limit], [1]):
        return index, None
    if is_symbolic(limit):
        last = cx.dim_scalar(limit - 1)
    else:
        dtype = np.int32 if stays_int32 else np.int64
        last = cx.constant(np.asarray(int(limit) - 1, dtype))
    clipped = cx.op("Min", cx.op("Max", index, cx.const_like(0, index)), last)
    is_valid = cx.op("Equal", index, clipped) if bounds_mode == indices.DROP else None
    return clipped, is_valid
