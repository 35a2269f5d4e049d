"""Replace a Concat of a tensor and its own edge rows by one Pad.

    before   x[2:3], x[1:2], x, x[-2:-1] ─> Concat(axis) ─> y
    after    x ─> Pad(reflect, 2 before and 1 after) ─> y

The first row repeated before x, or the last one after it, is a Pad with mode ``edge``; rows of the
opposite end are one with ``wrap``. The rows may come from Slices of one row, Gathers, a Slice that
runs backwards, or an Expand of one row, as ``jnp.pad`` writes them.

Needs    (1) a known size along the axis, so that the slices are known to be inside; (2) rows in the
         order of one mode of Pad, along any axis, in any number. ``wrap`` needs opset 19 and
         inputs that are not empty.
Keeps    (1) slices that are outputs or have other readers; (2) rows in another order, or of another
         tensor; (3) a mirror that includes the edge row (ONNX has no such mode); (4) empty tensors,
         and element types for which runtimes have no Pad.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import is_positive
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.row_padding import RowPadding, row_padding_of
from smelt.passes.tensors.stack import concat_axis

RUNNABLE = (
    *(ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BOOL),
    *(ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64),
)

WRAPS = 19
"""The first opset whose Pad has the mode ``wrap``."""


@rule(op("Concat", var("first"), rest=True))
def joined_edges(m: Match, b: Builder) -> Replacement:
    """Replace the Concat by a Pad."""
    axis, y = concat_axis(m.root), m.root.outputs[0]
    walk = m.walk()
    rows = row_padding_of(walk, axis, m.constants) if axis is not None else None  # needs 1
    if axis is None or rows is None or y.shape is None:
        return None
    if isinstance(rows, str):
        return Miss(rows)
    mode = _mode(rows)  # needs 2, keeps 2, 3
    if isinstance(mode, Miss):
        return mode
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    if y.dtype not in RUNNABLE:  # keeps 4
        return Miss(f"runtimes have no Pad of {y.dtype}")
    assert rows.x.shape is not None
    if 0 in rows.x.shape.dims:
        return Miss("a dim of x is 0, and runtimes cannot pad an empty tensor by its edges")
    if mode == "wrap":
        if not all(is_positive(dim) for dim in rows.x.shape.dims):
            return Miss("a dim of x may be 0, and runtimes cannot wrap an empty tensor")
        if m.opset < WRAPS:
            reason = f"the model has opset {m.opset}; wrap needs {WRAPS}"
            return Miss(reason, opset=WRAPS)
    pads = [0] * (2 * len(y.shape))
    pads[axis], pads[axis + len(y.shape)] = len(rows.before), len(rows.after)
    return b.op("Pad", rows.x, b.const_i64(pads), mode=mode)


def _mode(rows: RowPadding) -> str | Miss:
    """Return the mode of Pad that joins these rows, or a Miss."""
    size, before, after = rows.size, rows.before, rows.after
    if not before and not after:
        return Miss("the Slices take nothing along the axis")
    first, last = list(range(len(before))), list(range(len(after)))
    if before == [i + 1 for i in reversed(first)] and after == [size - 2 - i for i in last]:
        longest = max(len(before), len(after))
        too_long = Miss("the reflected rows are not fewer than the rows of the tensor")
        return "reflect" if longest < size else too_long
    if not any(before) and all(row == size - 1 for row in after):
        return "edge"
    if before == [size - len(before) + i for i in first] and after == last:
        return "wrap"
    return Miss("the rows are not in the order of any mode of Pad")


use_reflection_padding = rule_pass(
    "use_reflection_padding",
    __doc__,
    [joined_edges],
    exactness=EXACT,
    source="Core ML MIL: common::use_reflection_padding",
)
