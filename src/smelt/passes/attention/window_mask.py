"""The rule that adds a window mask to scores without splitting them, as in Swin (Liu et al. 2021).

    before   Reshape(Add(Reshape(scores: B*W,H,S,S to B,W,H,S,S), mask: 1,W,1,S,S)) ─> Softmax
    after    Add(scores, Reshape(Expand(mask, [B,1,1,1,1]): B*W,1,S,S)) ─> Softmax

The scores can then become one ``Attention``, and all layers that shift such windows share the mask.
"""

from __future__ import annotations

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim, same_shape
from smelt.passes.first_opsets import opset_miss
from smelt.passes.size_from_inputs import shape_from_inputs

_apart = op("Reshape", var("scores"), rest=True, name="apart")
_masked = op("Add", _apart, const(name="mask", limit=None), commutative=True)
_together = op("Reshape", _masked, rest=True, name="together")


@rule(op("MatMul", op("Softmax", _together, name="weights"), var("v")))
def window_mask(m: Match, b: Builder) -> Replacement:
    """Replace the Reshapes around the mask by a mask expanded to all images."""
    scores, split_shape = m["scores"], m["apart"].shape
    if (
        not same_shape(scores.shape, m["together"].shape)
        or split_shape is None
        or len(split_shape) != 5
    ):
        return None
    if scores.shape is None or len(scores.shape) != 4:
        return None
    unchanged_dims = zip(split_shape.dims[2:], scores.shape.dims[1:], strict=True)
    if not all(same_dim(split_dim, scores_dim) for split_dim, scores_dim in unchanged_dims):
        return None
    if opset.attribute(m.node("weights"), "axis", m.opset) not in (-1, 3):
        return Miss("the axis of the Softmax is not the last axis (the keys)")
    mask, windows = m["mask"].shape, split_shape[1]
    if mask is None or len(mask) != 5 or mask[0] != 1 or mask[1] != windows:
        return Miss("the mask is not 1,W,H,S,S with W the number of windows")
    if not all(same_dim(mask[axis], split_shape[axis]) for axis in (3, 4)) or mask[2] not in (
        1,
        split_shape[2],
    ):
        return Miss(
            "the heads, queries or keys of the mask are not proved to be those of the scores"
        )
    if early := opset_miss(m, "Attention"):
        return early
    image_shape = shape_from_inputs([split_shape[0], 1, 1, 1, 1], b.graph, b)
    if image_shape is None:
        return Miss("no input determines how many images there are")
    images = b.op("Expand", m["mask"], image_shape)
    flat = [-1, *(dim for dim in mask.dims[2:] if isinstance(dim, int))]
    if len(flat) < 4 or 0 in flat:
        return Miss("the mask has an unknown number of heads, queries or keys, or none")
    masked = b.op("Add", scores, b.op("Reshape", images, b.const_i64(flat)))
    return b.op("MatMul", b.like(m.node("weights"), masked), m["v"])
