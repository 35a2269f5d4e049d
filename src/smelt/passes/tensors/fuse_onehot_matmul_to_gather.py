"""Read rows of a table instead of multiplying it by one-hot vectors.

    before   i ─> OneHot(depth, [0, 1], axis = -1) ─> MatMul(·, table) ─> y
    after    i ─> Gather(table, ·, axis = 0) ─> y

A Cast may stand between. A row of zeros, for an index that no row has, becomes an error of
Gather; so the range of the indices must be proved.

Needs    a constant table of rank 2 of finite numbers, since 0 * inf is NaN; a -0 in it becomes 0,
         as a sum would have it. Integer indices between -rows and rows - 1, by their making:
         ArgMax, Clip, constants, Mod by a constant and the like.
Keeps    a one-hot axis that is not the last; other values than 0 and 1; one-hot vectors that
         something else reads.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.integer_range import integer_range

_onehot = op("OneHot", var("indices"), var("depth"), const(name="values"), name="onehot")
_table = const(name="table", limit=None)


@rule(op("MatMul", one_of(_onehot, op("Cast", _onehot)), _table))
def row_of_table(m: Match, b: Builder) -> Replacement:
    indices, table = m["indices"], m.array("table", limit=None)
    axis = m.node("onehot").attributes.get_int("axis", -1)
    rank = len(indices.shape) if indices.shape is not None else None
    if axis not in (-1, rank):
        return Miss("the one-hot axis is not the last")
    values = m.array("values")
    if values is None or values.tolist() != [0, 1]:
        return Miss("the values are not 0 and 1")
    if table is None or table.ndim != 2:
        return Miss("the table is not a matrix")
    bounds, rows = integer_range(indices, m.constants), table.shape[0]
    if bounds is None:
        return Miss("the indices are not integers")
    if bounds[0] < -rows or bounds[1] >= rows:
        return Miss("an index may lie outside the table")
    floating = table.dtype.kind not in "biu"
    if floating and not np.isfinite(table).all():
        return Miss("the table holds numbers that are not finite")
    source = m["table"]
    if floating and (np.signbit(table) & (table == 0)).any():
        source = b.constant(np.where(table == 0, np.zeros((), table.dtype), table))
    if indices.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        indices = b.op("Cast", indices, to=int(ir.DataType.INT64))
    return b.op("Gather", source, indices, axis=0)


fuse_onehot_matmul_to_gather = rule_pass(
    "fuse_onehot_matmul_to_gather",
    __doc__,
    [row_of_table],
    exactness=EXACT,
    source="Core ML MIL: common::fuse_onehot_matmul_to_gather",
)
