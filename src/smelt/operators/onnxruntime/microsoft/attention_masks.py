"""The masks of ``Attention`` and ``QAttention``: key lengths, key masks, and later keys."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attributes

INT32, INT64 = ir.DataType.INT32, ir.DataType.INT64
NEVER = float(np.finfo(np.float32).min)
"""Added to the scores of later keys if a query may see earlier keys only."""


def masked_scores(
    b: Builder,
    scores: ir.Value,
    q: ir.Value,
    k: ir.Value,
    mask: ir.Value | None,
    attributes: Attributes,
) -> ir.Value:
    """Build the scores with ``mask``, and with later keys hidden if ``unidirectional`` is set."""
    filler = attributes["mask_filter_value"]
    assert isinstance(filler, int | float)
    if mask is not None or attributes["unidirectional"]:
        zero, one = b.const_i64(0), b.const_i64(1)
        rows, keys = (b.op("Gather", b.op("Shape", x), b.const_i64(2), axis=0) for x in (q, k))
        columns = b.op("Unsqueeze", b.op("Range", zero, keys, one), b.const_i64([0]))
        if mask is not None:
            scores = b.op("Add", scores, _mask_as_bias(b, mask, columns, scores, filler))
        if attributes["unidirectional"]:
            places = b.op("Range", b.op("Sub", keys, rows), keys, one)
            is_later = b.op("Greater", columns, b.op("Unsqueeze", places, b.const_i64([1])))
            ends = (b.const_like(number, scores) for number in (NEVER, 0))
            scores = b.op("Add", scores, b.op("Where", is_later, *ends))
    return scores


def _mask_as_bias(
    b: Builder, mask: ir.Value, columns: ir.Value, like: ir.Value, fill: float
) -> ir.Value:
    """Build ``fill`` where the mask hides a key and 0 elsewhere, broadcastable to scores
    B,N,S,T."""
    assert mask.shape is not None
    rank = len(mask.shape)
    if rank == 1:
        ends = b.op("Unsqueeze", b.op("Cast", mask, to=int(INT64)), b.const_i64([1]))
        is_visible = b.op("Less", columns, ends)
    else:
        is_visible = b.op("Greater", b.op("Cast", mask, to=int(INT32)), b.constant(np.int32(0)))
    is_visible = b.op("Unsqueeze", is_visible, b.const_i64([1] if rank == 3 else [1, 2]))
    return b.op("Where", is_visible, b.const_like(0, like), b.const_like(fill, like))


def supports_mask(mask: ir.Value | None, x: ir.Value) -> bool:
    """True for a mask whose form the body supports; there must be one length per sequence."""
    if mask is None:
        return True
    if mask.shape is None or x.shape is None:
        return False
    return len(mask.shape) in (2, 3) or (len(mask.shape) == 1 and mask.shape[0] == x.shape[0])
