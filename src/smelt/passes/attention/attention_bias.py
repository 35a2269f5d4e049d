"""What an ``Attention`` adds to the scores, from the masks and biases that models write.

The values ``mask``, ``hidden`` and ``bias`` of the match say what is shown, what is hidden by
``low``, and what is added.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.broadcast import equal_if_broadcast
from smelt.ir.build import Builder
from smelt.ir.rule import Match, Miss
from smelt.ir.shapes import same_dim
from smelt.ir.walk import producer_of
from smelt.passes.attention.causal_mask import FLOOR, LOW, on_diagonal
from smelt.passes.told_size import told_shape

_MOVES = ("Transpose", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Slice", "Gather")
"""Operators whose results are elements of their first input."""

DEEP = 16
"""Operators between a bias and the constants that it is made of; models have about five."""


def bias_of(m: Match, b: Builder) -> tuple[ir.Value, ...] | Miss:
    """What is added to the scores, if anything is; of float32, with the last dims of the scores.

    A mask that is the same for all queries, or keys, is expanded, for runtimes take no other.
    """
    bias, hidden = m.get("bias"), m.get("hidden")
    mask = m.get("mask") if hidden is None else hidden
    if bias is None and mask is None:
        return ()
    if m["q"].dtype != ir.DataType.FLOAT:
        return Miss("a mask is not proved to outweigh scores in half precision")
    missing = _missing(bias if mask is None else mask, m["q"], m["keys"])
    if missing is None:
        return Miss("the mask is not proved to broadcast to the scores")
    if missing[1] and not _as_many(m["keys"], m["v"]):
        return Miss("it is not proved that there are as many values as keys")
    if mask is None:
        assert bias is not None
        added = _added(bias, m, b)
        return added if isinstance(added, Miss) else _expanded(added, missing, m, b)
    low = m.scalar("low")
    if low is None or not low <= LOW:  # fuse_attention needs 7
        return Miss("what hides a score is not below all scores")
    if low == -math.inf and not _shows_each_row(mask, hidden is None, m):  # fuse_attention keeps 1
        return Miss("a row may be hidden by -inf")
    lowest = max(low, FLOOR)
    zero, bottom = (b.constant(np.asarray(number, np.float32)) for number in (0, lowest))
    choices = (zero, bottom) if hidden is None else (bottom, zero)
    return _expanded(b.op("Where", mask, *choices), missing, m, b)


def _as_many(keys: ir.Value, v: ir.Value) -> bool:
    """True if B,H,D,S and B,H,S,D have one S: a mask of several columns may repeat a single key."""
    return keys.shape is not None and v.shape is not None and same_dim(keys.shape[3], v.shape[2])


def _expanded(
    bias: ir.Value, missing: tuple[bool, bool], m: Match, b: Builder
) -> tuple[ir.Value, ...]:
    """``bias`` with a row for each query, and a column for each key, where it has one."""
    queries, keys = m["q"].shape, m["keys"].shape
    if not any(missing) or queries is None or keys is None:
        return (bias,)
    dims = [queries[2] if missing[0] else 1, keys[3] if missing[1] else 1]
    shape = told_shape([1, 1, *dims], b.graph, b)
    if shape is None:
        whole = [
            b.op("Shape", value, start=i, end=i + 1) for value, i in ((m["q"], 2), (m["keys"], 3))
        ]
        shape = b.op("Concat", b.const_i64([1, 1]), *whole, axis=0)
    return (b.op("Expand", bias, shape),)


def _shows_each_row(mask: ir.Value | None, shown: bool, m: Match) -> bool:
    """True if each row of ``mask`` has a key where it is ``shown``."""
    queries = m["q"].shape
    if mask is None or queries is None:
        return False
    array = m.array(mask, None)
    if array is not None:
        return bool((array == shown).any(-1).all())
    return on_diagonal(mask, queries[2], m.constants) == shown


def _missing(mask: ir.Value | None, q: ir.Value, keys: ir.Value) -> tuple[bool, bool] | None:
    """Whether ``mask`` has to be expanded to queries, and to keys; None if it may not fit.

    The product with the values needs as many weights as there are keys, so a mask of a size that is
    not known has that size, or 1.
    """
    if mask is None or mask.shape is None or q.shape is None or keys.shape is None:
        return None
    shape = mask.shape
    if len(shape) not in (2, 4):
        return None
    lead = zip(shape.dims[:-2], q.shape.dims[:2], strict=False)
    if not all(dim == 1 or same_dim(dim, of) for dim, of in lead):
        return None
    sizes = (q.shape[2], keys.shape[3])
    full = [equal_if_broadcast(dim, size) for dim, size in zip(shape[-2:], sizes, strict=True)]
    if not full[0] and shape[-2] != 1:
        return None
    if isinstance(shape[-1], int) and isinstance(sizes[1], int) and shape[-1] not in (1, sizes[1]):
        return None
    return not full[0], not full[1]


def _added(bias: ir.Value, m: Match, b: Builder) -> ir.Value | Miss:
    array = m.array(bias, limit=None)
    if array is not None and _shows_each_row_of(array):
        above = bool((array >= FLOOR).all())
        return bias if above else b.constant(np.maximum(array, np.float32(FLOOR)))
    raised = _raised(bias, m, b)
    if raised is None:
        return Miss("what is added may be infinite, or hide all keys of a row")
    return raised


def _raised(value: ir.Value | None, m: Match, b: Builder, depth: int = 0) -> ir.Value | None:
    """``value`` with no element below the floor; None if one may be infinite or NaN."""
    array = m.array(value, limit=None)
    if array is not None:
        if array.dtype != np.float32 or not np.isfinite(array).all():
            return None
        return value if (array >= FLOOR).all() else b.constant(np.maximum(array, np.float32(FLOOR)))
    node = producer_of(value, "Where", "Add", *_MOVES)
    if node is None or depth == DEEP:
        return None
    if node.op_type == "Add":
        bounds = _bounds(value, m, depth)
        within = bounds is not None and bounds[0] >= FLOOR and bounds[1] <= -FLOOR
        return value if within else None
    kept = node.inputs[:1] if node.op_type == "Where" else ()
    taken = node.inputs[1:3] if node.op_type == "Where" else node.inputs[:1]
    parts = [_raised(part, m, b, depth + 1) for part in taken]
    if None in parts:
        return None
    if all(part is before for part, before in zip(parts, taken, strict=True)):
        return value
    return b.like(node, *kept, *parts, *node.inputs[len(kept) + len(parts) :])


def _bounds(value: ir.Value | None, m: Match, depth: int) -> tuple[float, float] | None:
    """Between which finite numbers the elements of a sum of constants lie; None if unknown."""
    array = m.array(value, limit=None)
    if array is not None:
        if array.dtype != np.float32 or not array.size or not np.isfinite(array).all():
            return None
        return float(array.min()), float(array.max())
    node = producer_of(value, "Where", "Add", *_MOVES)
    if node is None or depth == DEEP:
        return None
    if node.op_type in _MOVES:
        return _bounds(node.inputs[0], m, depth + 1)
    parts = [_bounds(part, m, depth + 1) for part in node.inputs[-2:]]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    lows, highs = [low for low, _ in known], [high for _, high in known]
    if node.op_type == "Add":
        return sum(lows), sum(highs)
    return min(lows), max(highs)


def _shows_each_row_of(array: np.ndarray) -> bool:
    """True if some keys of each row are not hidden by -inf, and nothing else is infinite."""
    if array.ndim < 2 or array.dtype != np.float32:
        return False
    hidden = array == -np.inf  # fuse_attention keeps 1
    return bool((np.isfinite(array) | hidden).all() and not hidden.all(-1).any())
