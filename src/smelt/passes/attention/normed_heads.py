"""The rule that normalizes heads before the Transpose of heads; Gemma 3 normalizes after it."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule

_HEADS_AND_ROWS = (0, 2, 1, 3)


@rule(
    op(
        ("RMSNormalization", "LayerNormalization"),
        op("Transpose", var("x"), perm=_HEADS_AND_ROWS),
        rest=True,
    ),
    needs=("Attention",),
)
def normed_heads(m: Match, b: Builder) -> Replacement:
    """Replace Norm(Transpose(x)) by Transpose(Norm(x)), so that an Attention can absorb the
    Transpose."""
    node, x = m.root, m["x"]
    weights = [value.shape for value in node.inputs[1:] if value is not None]
    if x.shape is None or len(x.shape) != 4 or len(node.outputs) > 1:
        return None
    if node.attributes.get_int("axis", -1) not in (-1, 3):
        return None
    if any(shape is None or len(shape) > 1 for shape in weights):
        return None
    inputs = [x, *node.inputs[1:]]
    normed = b.add(ir.Node("", node.op_type, inputs, node.attributes.values()))[0]
    return b.op("Transpose", normed, perm=_HEADS_AND_ROWS)
