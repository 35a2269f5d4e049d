"""Put zeros into the rows of an attention whose mask hides all keys, after heads are merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import OneOf, Op, one_of, op
from smelt.ir.rule import Match, Miss
from smelt.ir.same_shape import same_dim
from smelt.passes.attention.causal_mask import FLOOR

BOOLS = 20
"""The first opset whose ReduceMax and ReduceMin support bools."""


def merged_heads(product: Op) -> OneOf:
    """Match heads B,H,S,D that a Reshape merges, after a Transpose or not."""
    moved = op("Transpose", product, perm=(0, 2, 1, 3), name="moved")
    return one_of(op("Reshape", moved, rest=True), op("Reshape", product, rest=True))


NOT_MERGED = "the result is not proved to be B,S,H*D, with the heads merged"
NOT_SHARED = (
    "the mask is not proved to be the same for all heads (rank 2, or rank 4 with axis 1 of 1)"
)


def rank_of_merged(m: Match, mask: ir.Value | None) -> int | None:
    """Return the rank of the merged result: 3 for B,S,H*D, and 2 or 3 for one query; else None.

    The match names the product of weights and values ``product``, and a Transpose after it
    ``moved``. Heads that share keys may be rows, B,G,R,D, if the mask is the same for all queries.
    """
    shape, product = m.root.outputs[0].shape, m["product"].shape
    if shape is None or product is None or len(product) != 4:
        return None
    if m.get("moved") is not None:
        return 3 if len(shape) == 3 else None
    heads, queries, size = product.dims[1:]
    same_for_queries = mask is not None and mask.shape is not None and mask.shape[-2] == 1
    if not isinstance(queries, int) or not (queries == 1 or same_for_queries):
        return None
    if not isinstance(heads, int) or not isinstance(size, int):
        return None
    width = heads * queries * size
    merged = [[product[0], width], [product[0], 1, width]]
    for dims in merged:
        if len(dims) == len(shape) and all(map(same_dim, dims, shape)):
            return len(dims)
    return None


def is_for_all_heads(mask: ir.Value) -> bool:
    """True for a mask of queries and keys, or one of batches, one head, queries and keys."""
    shape = mask.shape
    return shape is not None and (len(shape) == 2 or (len(shape) == 4 and shape[1] == 1))


@dataclass(frozen=True)
class MaskForm:
    """``products``: compute with masks of the numbers 0 and 1, not by Where and ReduceMax of bools;
    the number of keys must be known."""

    products: bool = False


def cannot_reduce(m: Match, mask: ir.Value) -> Miss | None:
    """Return why no flags of the rows of ``mask`` can be computed, None if they can."""
    if not m.options.products:
        if m.opset >= BOOLS:
            return None
        return Miss(f"ReduceMax supports bools from opset {BOOLS} on", opset=BOOLS)
    keys = None if mask.shape is None else mask.shape[-1]
    if not isinstance(keys, int) or keys == 0:
        return Miss("the number of keys is unknown")
    return None


def _as_numbers(b: Builder, mask: ir.Value, hides: bool) -> ir.Value:
    """Return 1 where ``mask`` shows a key and 0 where it hides one."""
    number = b.op("Cast", mask, to=int(ir.DataType.FLOAT))
    return b.op("Sub", b.constant(np.ones((), np.float32)), number) if hides else number


def bias_of(m: Match, b: Builder, mask: ir.Value, hides: bool) -> ir.Value:
    """Return 0 where ``mask`` shows a key, and the lowest number where it hides one."""
    low, zero = (b.constant(np.asarray(number, np.float32)) for number in (FLOOR, 0))
    if m.options.products:
        return b.op("Mul", _as_numbers(b, mask, not hides), low)
    branches = (low, zero) if hides else (zero, low)
    return b.op("Where", mask, *branches)


def _zeroed_by_products(
    b: Builder, merged: ir.Value, mask: ir.Value, hides: bool, axes: list[int]
) -> ir.Value:
    """Return ``merged`` times 1 for rows with a key and 0 for others.

    The mean over K keys is at least 1/K, less its rounding, if one is shown, so that 2 K times the
    mean is above 1.
    """
    assert mask.shape is not None
    assert isinstance(mask.shape[-1], int)
    mean = b.mean(_as_numbers(b, mask, hides), [-1])
    zero, one, twice = (np.asarray(x, np.float32) for x in (0, 1, 2 * mask.shape[-1]))
    counted = b.op("Mul", mean, b.constant(twice))
    flags = b.op("Clip", counted, b.constant(zero), b.constant(one))
    flags = b.op("Squeeze", flags, b.const_i64(axes)) if axes else flags
    return b.op("Mul", merged, flags)


def with_zero_rows(
    m: Match, b: Builder, weights: ir.Value, mask: ir.Value, rank: int, hides: bool
) -> ir.Value:
    """Return the product of ``weights`` and values, heads merged, with zeros in rows without a key.

    ``hides``: True in ``mask`` hides a key.
    """
    heads = b.op("MatMul", weights, m["v"])
    if m.get("moved") is not None:
        heads = b.op("Transpose", heads, perm=[0, 2, 1, 3])
    merged = b.add(ir.Node("", "Reshape", [heads, m.root.inputs[1]], m.root.attributes.values()))[0]
    axes: list[int] = []
    if mask.shape is not None and len(mask.shape) == 4:
        axes = [1] if rank == 3 else [1, 2]
    if m.options.products:
        return _zeroed_by_products(b, merged, mask, hides, axes)
    # One flag for each row: it has no key if ``hides``, else it has a key.
    flags = b.op("ReduceMin" if hides else "ReduceMax", mask, b.const_i64([-1]), keepdims=1)
    flags = b.op("Squeeze", flags, b.const_i64(axes)) if axes else flags
    zero = b.constant(np.zeros((), np.float32))
    branches = (zero, merged) if hides else (merged, zero)
    return b.op("Where", flags, *branches)
