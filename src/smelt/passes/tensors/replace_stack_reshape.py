"""Replace a stack and the merge of its new axis with the next one by a Concat.

    before   a, b: [C, H, W] ─> stack of axis 1: [C, 2, H, W] ─> Reshape [C, 2*H, W]
    after    a, b ─> Concat(axis 1) ─> [C, 2*H, W]

A stack is a Concat of Unsqueezes. If the new axis is merged with the one before it, the values are
interleaved; ``detect-concat-interleave`` handles that.

Needs    (1) any number of values; (2) inferred dims, also symbolic ones.
Keeps    (1) a stack or an unsqueezed value that is an output or has other readers; (2) a Reshape
         that changes other dims as well.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.stack import dims_of, merged_dims, same_dims, stack_of


@rule(op(["Reshape", "Flatten"], var("stack"), rest=True))
def stack_merged_with_next_axis(m: Match, b: Builder) -> Replacement:
    """Replace the stack and the Reshape by a Concat."""
    walk = m.walk()
    stack = stack_of(m["stack"], m.constants, walk)  # needs 1, 2
    before, after = dims_of(m["stack"]), dims_of(m.root.outputs[0])
    if stack is None or before is None or after is None or stack.axis == len(before) - 1:
        return None
    if not same_dims(merged_dims(before, stack.axis, stack.axis + 1), after):  # keeps 2
        return Miss("the Reshape is not proved to merge the new axis with the next one")
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    return b.op("Concat", *stack.values, axis=stack.axis)


replace_stack_reshape = rule_pass(
    "replace_stack_reshape",
    __doc__,
    [stack_merged_with_next_axis],
    exactness=EXACT,
    source="Core ML MIL: common::replace_stack_reshape",
)
