"""Fuse a Reshape, a Transpose and a Reshape into one DepthToSpace or SpaceToDepth.

    before   x: N,C,2h,2w ─> Reshape(N,C,h,2,w,2) ─> Transpose(0,3,5,1,2,4) ─> Reshape ─> y
    after    x ─> SpaceToDepth(2) ─> y

    before   x: N,4C,h,w ─> Reshape(N,C,2,2,h,w) ─> Transpose(0,1,4,2,5,3) ─> Reshape ─> y
    after    x ─> DepthToSpace(2, CRD) ─> y

    before   the first form with Transpose(0,1,3,5,2,4), torch's PixelUnshuffle
    after    x ─> SpaceToDepth(2) ─> Gather(channels, axis = 1) ─> y

ONNX Runtime is slow at Transposes that move single elements: chains of 10 to 700 microseconds took
.2 to .57 of the time as one operator, .15 to .5 with the Gather.

Needs    (1) rank 6 in between and a square block of constant size; (2) sizes before and after that
         are proved, or stated by constants; (3) element types for which runtimes have the operator;
         (4) in the third form, a constant number of channels, and a target without own kernels.
Keeps    (1) inner results with other readers; (2) empty tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, same_shape
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape
from smelt.passes.tensors.concat_to_pixel_shuffle import RUNNABLE


@dataclass(frozen=True)
class _Form:
    """One permutation of six dims: the axes of channels, of the block, and of rows and columns."""

    op_type: str
    channels: int
    block: tuple[int, int]
    image: tuple[int, int]
    mode: str | None = None


# In the rank-6 shape: the axes of channels, block rows and columns, image rows and columns.
_FORMS: dict[tuple[int, ...], _Form] = {
    (0, 3, 4, 1, 5, 2): _Form("DepthToSpace", 3, (1, 2), (4, 5), "DCR"),
    (0, 1, 4, 2, 5, 3): _Form("DepthToSpace", 1, (2, 3), (4, 5), "CRD"),
    (0, 3, 5, 1, 2, 4): _Form("SpaceToDepth", 1, (3, 5), (2, 4)),
    (0, 1, 3, 5, 2, 4): _Form("SpaceToDepth", 1, (3, 5), (2, 4), "CRD"),
}

_split = op("Reshape", var("x"), rest=True, name="split")


@rule(op("Reshape", op("Transpose", _split, name="moved"), rest=True), same_shape=True)  # keeps 1
def blocks_moved(m: Match, b: Builder) -> Replacement:
    """Replace the chain by the operator of its permutation.

    Reshapes around the operator merge or split dims as those of the chain did.
    """
    x, y, dims = m["x"], m.root.outputs[0], m["split"].shape
    form = _FORMS.get(tuple(permutation(m.node("moved")) or ()))
    if form is None or dims is None or len(dims) != 6 or 0 in dims.dims:  # needs 1, keeps 2
        return None
    size = dims[form.block[0]]
    if not isinstance(size, int) or size < 2 or dims[form.block[1]] != size:
        return Miss("the two block dims are not equal constants of 2 or more")
    if y.dtype not in RUNNABLE:  # needs 3
        return Miss(f"runtimes have no {form.op_type} of {y.dtype}")
    deep_dims = [dims[0], dims[form.channels] * size**2, *(dims[axis] for axis in form.image)]
    spatial_dims = [dims[0], dims[form.channels], *(dims[axis] * size for axis in form.image)]
    dims_before, dims_after = (
        (deep_dims, spatial_dims) if form.op_type == "DepthToSpace" else (spatial_dims, deep_dims)
    )
    operand_shape = _shape_operand(x.shape, dims_before)
    result_shape = _shape_operand(ir.Shape(dims_after), y.shape)
    if operand_shape is None or result_shape is None:
        return Miss("no constant can state the dims before or behind the shuffle")  # needs 2
    channels = dims[form.channels]
    by_channel = form.op_type == "SpaceToDepth" and form.mode == "CRD" and channels != 1
    if by_channel and (not isinstance(channels, int) or b.kernels is not None):  # needs 4
        return Miss("SpaceToDepth puts the positions of a block before the channels, not after")
    value = b.op("Reshape", x, b.const_i64(operand_shape)) if operand_shape else x
    mode = form.mode if form.op_type == "DepthToSpace" else None
    value = b.op(form.op_type, value, blocksize=size, mode=mode)
    if by_channel and isinstance(channels, int):
        channel_order = np.arange(channels * size**2).reshape(size**2, channels).T
        value = b.op("Gather", value, b.const_i64(channel_order.reshape(-1).tolist()), axis=1)
    return b.op("Reshape", value, b.const_i64(result_shape)) if result_shape else value


def _shape_operand(
    source: ir.Shape | None, result: Sequence[Dim] | ir.Shape | None
) -> list[int] | None:
    """Return the shape operand of a Reshape from ``source`` to ``result``.

    Returns ``[]`` if the shapes are equal, None if no constant can state ``result``.
    """
    target = result if isinstance(result, ir.Shape) or result is None else ir.Shape(result)
    if same_shape(source, target):
        return []
    return constant_shape(source, target)


fuse_pixel_shuffle = rule_pass(
    "fuse_pixel_shuffle",
    __doc__,
    [blocks_moved],
    exactness=EXACT,
    after=("merge_consecutive_reshapes",),
)
