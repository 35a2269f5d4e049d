"""Replace the product of one-hot vectors and a table by a Gather of its rows.

    before   i ─> OneHot(depth, [0, 1], axis = -1) ─> MatMul(·, table) ─> y
    before   i ─> Unsqueeze(-1) ─> Equal(·, [0, 1, 2, ...]) ─> Cast ─> MatMul(·, table) ─> y
    after    i ─> Gather(table, ·, axis = 0) ─> y

A Cast may follow OneHot; ``jax.nn.one_hot`` writes the second form. An index without a row gives a
row of zeros before and an error of Gather after. So the range of the indices must be proved, or
promised by the option ``assume-in-range``.

Needs    (1) a constant table of rank 2 with finite numbers, because 0 * inf is NaN (a -0 in it
         becomes 0, as in the sum); (2) integer indices that are proved to be in -rows ... rows - 1
         (0 ... rows - 1 in the second form) by their computation: ArgMax, Clip, constants, Mod by a
         constant and similar operators.
Keeps    (1) a one-hot axis that is not the last; (2) other values than 0 and 1; (3) one-hot
         vectors with other readers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import const, op
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, assumes, rule_pass
from smelt.passes.tensors.integer_range import integer_range
from smelt.passes.tensors.one_hot import ONE_HOT, gather_indices, one_hot


@rule(op("MatMul", ONE_HOT, const(name="table", limit=None)))  # keeps 3
def row_of_table(m: Match, b: Builder) -> Replacement:
    """Replace the product by a Gather if no index can be outside the table."""
    vectors, table = one_hot(m), m.array("table", limit=None)
    if isinstance(vectors, Miss):  # keeps 1, 2
        return vectors
    if table is None:
        return Miss("the table is not constant")
    if table.ndim != 2:
        return Miss("the rank of the table is not 2")
    bounds, rows = integer_range(vectors.indices, m.constants), table.shape[0]
    if bounds is None:
        return Miss("the indices are not known to be integers")
    lowest = -rows if vectors.signed else 0
    if not m.options.assume_in_range and (bounds[0] < lowest or bounds[1] >= rows):  # needs 2
        return Miss("an index may lie outside the table")
    floating = table.dtype.kind not in "biu"
    if floating and not np.isfinite(table).all():  # needs 1
        return Miss("the table holds numbers that are not finite")
    source = m["table"]
    if floating and (np.signbit(table) & (table == 0)).any():
        source = b.constant(np.where(table == 0, np.zeros((), table.dtype), table))
    return b.op("Gather", source, gather_indices(b, vectors), axis=0)


@dataclass(frozen=True)
class Indices:
    """``assume_in_range``: assume, without proof, that no index is outside the table."""

    assume_in_range: bool = False


IN_RANGE = assumes("no index lies outside the table")


fuse_onehot_matmul_to_gather = rule_pass(
    "fuse_onehot_matmul_to_gather",
    __doc__,
    [row_of_table],
    exactness=EXACT,
    declares=lambda options, stats: IN_RANGE if options.assume_in_range else EXACT,
    options_type=Indices,
    source="Core ML MIL: common::fuse_onehot_matmul_to_gather",
)
