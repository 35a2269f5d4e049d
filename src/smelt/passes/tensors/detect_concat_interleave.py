"""Fuse the interleaving of tensors along an axis into ``smelt.ConcatInterleave``.

    before   a, b ─> Concat(1) ─> Reshape [N,2,C,H,W] ─> Transpose ─> Reshape [N,C*2,H,W] ─> y
             a, b ─> Unsqueeze(2) ─> Concat(2) ─> Reshape [N,C*2,H,W] ─> y
    after    a, b ─> ConcatInterleave(1) ─> y

Networks that shuffle channels between two branches have many of the first form.

Needs    (1) a target that has the operator; (2) values of one inferred shape, in any number, along
         any axis.
Keeps    (1) inner results that are outputs or have other readers; (2) groups of one tensor;
         (3) groups that are not the values themselves.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.operators.concat_interleave import OPERATOR
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.interleave import interleaving_of


@rule(op(["Reshape", "Flatten"], var("wide"), rest=True))
def interleaved_values(m: Match, b: Builder) -> Replacement:
    """Replace an interleaving by ConcatInterleave."""
    walk = m.walk()
    interleaving = interleaving_of(m.root.outputs[0], m.constants, walk)  # needs 2, keeps 2, 3
    if interleaving is None:
        return None
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    return b.op(OPERATOR.name, *interleaving.values, domain=OPERATOR.domain, axis=interleaving.axis)


detect_concat_interleave = rule_pass(
    "detect_concat_interleave",
    __doc__,
    [interleaved_values],
    exactness=EXACT,
    makes=(OPERATOR.key,),  # needs 1
    after=("concat_to_pixel_shuffle", "replace_stack_reshape"),
    source="Core ML MIL: common::detect_concat_interleave",
)
