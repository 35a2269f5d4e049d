"""Turn a Transpose that moves only dims of size 1 into a Reshape, which moves no elements.

    before   x: [N,C,1,1] ─> Transpose(0,2,3,1) ─> y       after   x ─> Reshape(N,1,1,C) ─> y

Needs    (1) moved dims of size 1, and all other dims in their order; (2) a shape of y that a
         constant Reshape target can state: at most one unknown dim that changes its position.
Keeps    (1) empty tensors. The pass runs after the passes that match Transposes, so that pairs of
         them still cancel.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape


@rule(op("Transpose", var("x")), same_shape=True)
def moved_unit_dims(m: Match, b: Builder) -> Replacement:
    """Replace the Transpose by a Reshape to a constant shape."""
    x, perm = m["x"], permutation(m.root)
    if perm is None or x.shape is None:
        return None
    moved = [axis for axis in perm if x.shape[axis] != 1]
    if moved != sorted(moved):  # needs 1
        return None
    target = constant_shape(x.shape, m.root.outputs[0].shape)
    if target is None:  # needs 2, keeps 1
        return Miss("the result has a dim of size 0, or several dims that are unknown")
    return b.op("Reshape", x, b.const_i64(target))


transpose_to_reshape = rule_pass(
    "transpose_to_reshape",
    __doc__,
    [moved_unit_dims],
    exactness=EXACT,
    after=("reduce_transposes", "fuse_attention"),
)
