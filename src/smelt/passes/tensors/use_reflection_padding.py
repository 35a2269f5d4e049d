"""Replace the joining of a tensor with its own mirrored edges by one Pad.

    before   x[2:3], x[1:2], x, x[-2:-1] ─> Concat(axis) ─> y
    after    x ─> Pad(reflect, 2 before and 1 after) ─> y

Slices of one row, Gathers of rows, and a slice that runs backwards over several all count.

Needs    the size along the axis, for the slices to be known to lie inside; any axis, any number
         of rows on either side.
Keeps    slices that something else reads or a graph returns; rows in another order, or of another
         tensor; an edge that is repeated, which is another kind of padding; element types for
         which runtimes have no Pad.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.interior import is_closed
from smelt.passes.tensors.stack import concat_axis, producer_of

RUNNABLE = (
    *(ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BOOL),
    *(ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64),
)


@rule(op("Concat", var("first"), rest=True))
def mirrored_edges(m: Match, b: Builder) -> Replacement:
    axis, y = concat_axis(m.root), m.root.outputs[0]
    pieces = [value for value in m.root.inputs if value is not None]
    cuts = [producer_of(value, "Slice", "Gather") for value in pieces]
    if axis is None or y.shape is None:
        return None
    x = _whole(pieces, cuts)
    size = x.shape[axis] if x is not None and x.shape is not None else None
    if x is None or size is None:
        return None
    if not isinstance(size, int):
        return Miss("the size along the axis is not known")
    rows: list[list[int]] = []
    for value, cut in zip(pieces, cuts, strict=True):
        taken = list(range(size)) if value is x else _rows(cut, axis, size, m.constants)
        if taken is None:
            return Miss("a piece is not a slice along the axis alone, by constants")
        rows.append(taken)
    middle = next(index for index, value in enumerate(pieces) if value is x)
    before = [row for piece in rows[:middle] for row in piece]
    after = [row for piece in rows[middle + 1 :] for row in piece]
    if not before and not after:
        return Miss("the slices are empty")
    mirrored = [size - 2 - i for i in range(len(after))]
    if before != list(range(len(before), 0, -1)) or after != mirrored:
        return Miss("the rows are not the mirrored ones")
    if max(len(before), len(after)) >= size:
        return Miss("there are more rows than the tensor has beside its edge")
    if not is_closed(
        [cut for v, cut in zip(pieces, cuts, strict=True) if cut and v is not x], m.root
    ):
        return Miss("a slice is read elsewhere")
    if x.dtype not in RUNNABLE:
        return Miss(f"runtimes have no Pad of {x.dtype}")
    pads = [0] * (2 * len(y.shape))
    pads[axis], pads[axis + len(y.shape)] = len(before), len(after)
    return b.op("Pad", x, b.const_i64(pads), mode="reflect")


def _whole(pieces: list[ir.Value], cuts: list[ir.Node | None]) -> ir.Value | None:
    """The piece that the others are cut from; None if there is none, or nothing else."""
    sources = {cut.inputs[0]: None for cut in cuts if cut is not None}
    whole = [value for value in pieces if value in sources]
    if len(whole) != 1 or len(pieces) < 2:
        return None
    others = zip(pieces, cuts, strict=True)
    if any(v is not whole[0] and (c is None or c.inputs[0] is not whole[0]) for v, c in others):
        return None
    return whole[0]


def _rows(cut: ir.Node | None, axis: int, size: int, constants: Constants) -> list[int] | None:
    """The rows of ``axis``, of ``size``, that a Slice or a Gather takes in this order."""
    if cut is None or cut.outputs[0].shape is None:
        return None
    rank = len(cut.outputs[0].shape)
    if cut.op_type == "Gather":
        index = cut.inputs[1]
        taken, along = constants.ints(index), cut.attributes.get_int("axis", 0)
        # An index of another rank would change the rank of the result.
        vector = index is not None and index.shape is not None and len(index.shape) == 1
        if taken is None or not vector or along % rank != axis:
            return None
        if any(not -size <= row < size for row in taken):
            return None
        return [row % size for row in taken]
    if len(cut.inputs) < 3:
        return None
    starts, ends = constants.ints(cut.inputs[1]), constants.ints(cut.inputs[2])
    axes = opset.axes_of(cut, constants, index=3)
    steps = constants.ints(cut.inputs[4]) if len(cut.inputs) > 4 and cut.inputs[4] else (1,)
    if starts is None or ends is None or axes is None or steps is None:
        return None
    if len(starts) != 1 or len(steps) != 1 or (axes or (0,))[0] % rank != axis or not steps[0]:
        return None
    return list(range(*slice(starts[0], ends[0], steps[0]).indices(size)))


use_reflection_padding = rule_pass(
    "use_reflection_padding",
    __doc__,
    [mirrored_edges],
    exactness=EXACT,
    source="Core ML MIL: common::use_reflection_padding",
)
