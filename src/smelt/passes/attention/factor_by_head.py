"""Scores that are scaled by one number for each head, as in Swin V2 (Liu et al. 2022)."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.rule import Match
from smelt.ir.walk import producer_of
from smelt.passes.layout.merge_consecutive_transposes import permutation


def factor_by_head(m: Match) -> ir.Value | None:
    """Return the factor of the scores if it is a finite constant with one number for each head."""
    factor = m.get("factor")
    array = m.array(factor, None) if factor is not None else None
    if array is None or factor is None or array.size == 1 or not 3 <= array.ndim <= 4:
        return None
    heads = m["q"].shape[1] if m["q"].shape is not None else None
    is_per_head = array.shape[-3:] == (heads, 1, 1) and array.size == heads
    return factor if is_per_head and bool(np.isfinite(array).all()) else None


def times_by_head(q: ir.Value, factor: ir.Value, m: Match, b: Builder) -> ir.Value:
    """Return ``q`` times one number for each head.

    If a Transpose moves the heads of ``q``, the product goes before it.
    """
    transpose, array = producer_of(q, "Transpose"), m.array(factor, None)
    if transpose is None or array is None or permutation(transpose) != (0, 2, 1, 3):
        return b.op("Mul", q, factor)
    rows = b.op("Mul", transpose.inputs[0], b.constant(array.reshape(-1, 1)))
    return b.op("Transpose", rows, perm=[0, 2, 1, 3])
