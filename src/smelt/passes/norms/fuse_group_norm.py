"""Fuse a normalization of each group of channels into one ``GroupNormalization``.

    before   x ─> Reshape(N,G,-1) ─> InstanceNormalization ─> Reshape(N,C,H,W) ─> * scale ─> y
    after    x ─> GroupNormalization(scale) ─> y

ONNX Runtime has no kernel for this operator and runs its function body, which is slower than the
form before. So the pass runs only by name and for targets with a kernel.

Needs    (1) opset 21; (2) a normalization without scale and bias; (3) known numbers of groups and
         channels, and an unchanged batch dim.
Keeps    (1) groups with a scale each; (2) inner results with other readers.
"""

from __future__ import annotations

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.passes.base import rounding, rule_pass
from smelt.passes.norms.fuse_layernorm_or_instancenorm import (
    absorb_bias,
    absorb_scale,
    adds_nothing,
    is_filled,
)
from smelt.passes.norms.norm_operators import channel_constants, parameter_axes, stash_type

_grouped = op("Reshape", var("x"), var("to"), name="grouped")
_group_norm = op(
    ["InstanceNormalization", "LayerNormalization"],
    _grouped,
    var("scale"),
    optional(var("bias")),
    name="norm",
)


@rule(op("Reshape", _group_norm, var("back")), min_opset=21)  # needs 1, keeps 2
def groups(m: Match, b: Builder) -> Replacement:
    """Replace a normalization of reshaped groups by GroupNormalization."""
    x, grouped, norm = m["x"], m["grouped"], m.node("norm")
    if x.shape is None or grouped.shape is None or min(len(x.shape), len(grouped.shape)) < 3:
        return None
    count, channels = grouped.shape[1], x.shape[1]
    # needs 3
    if not isinstance(count, int) or not isinstance(channels, int) or channels % max(count, 1):
        return Miss("the group count is not proved to divide the number of channels")
    if not same_dim(x.shape[0], grouped.shape[0]):
        return Miss("the batch dim is not proved to stay the same")
    if not adds_nothing(m):
        return Miss("the bias of the normalized groups is not all zeros")
    if not is_filled(m, "scale", 1):  # needs 2, keeps 1
        return Miss("the scale of the normalized groups is not all ones")
    if norm.op_type == "LayerNormalization":
        rank = len(grouped.shape)
        if parameter_axes(norm, rank, m.opset) != range(2, rank):
            return Miss("the normalized axes are not those of a group")
    ones, zeros = channel_constants(x, b)
    epsilon = opset.attribute(norm, "epsilon", m.opset)
    return b.op(
        "GroupNormalization",
        *(x, ones, zeros),
        num_groups=count,
        epsilon=epsilon,
        stash_type=stash_type(x),
    )


fuse_group_norm = rule_pass(
    "fuse_group_norm",
    __doc__,
    [groups, absorb_scale, absorb_bias],
    exactness=rounding(64, "variances are summed in another order"),
    default=False,
)
