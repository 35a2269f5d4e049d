"""Merge two consecutive Transposes into one, or remove both if they cancel.

    before   x ─> Transpose(p) ─> Transpose(q) ─> y        after   x ─> Transpose(p[q]) ─> y

Needs    (1) both permutations, given or implied by the rank.
Keeps    (1) the first Transpose if it has other readers.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.passes.base import EXACT, rule_pass


# keeps 1
@rule(op("Transpose", op("Transpose", var("x"), name="inner", shared=True)), same_shape=True)
def transpose_of_transpose(m: Match, b: Builder) -> Replacement:
    """Replace two Transposes by their composition."""
    first, second = permutation(m.node("inner")), permutation(m.root)
    if first is None or second is None or len(first) != len(second):  # needs 1
        return None
    merged = [first[axis] for axis in second]
    if merged == sorted(merged):
        return m["x"]
    return b.op("Transpose", m["x"], perm=merged)


def permutation(node: ir.Node) -> tuple[int, ...] | None:
    """Return the permutation of a Transpose: result axis ``i`` is axis ``perm[i]`` of the input.

    None if it is unknown, or its length differs from the rank of the input.
    """
    attribute = node.attributes.get("perm")
    source = node.inputs[0]
    shape = source.shape if source is not None else None
    if attribute is not None:
        perm = tuple(attribute.as_ints())
        return perm if shape is None or len(perm) == len(shape) else None
    return None if shape is None else tuple(reversed(range(len(shape))))


merge_consecutive_transposes = rule_pass(
    "merge_consecutive_transposes",
    __doc__,
    [transpose_of_transpose],
    exactness=EXACT,
    source="Core ML MIL: common::merge_consecutive_transposes",
)
