"""Replace images whose rows and columns are interleaved by one DepthToSpace.

    before   a, b ─> interleave rows ────┐
             c, d ─> interleave rows ────┴─> interleave columns ─> y
    after    a, c, b, d ─> Concat(1) ─> DepthToSpace(2, DCR) ─> y

Interleaving is Unsqueeze, Concat and Reshape, or ConcatInterleave. Columns may be interleaved
first, and n*n images give a DepthToSpace of n. Fully convolutional upsampling has this form.

Needs    (1) rank 4, axes 2 and 3, and n groups of n images; (2) any number of channels, even a
         symbolic one.
Keeps    (1) inner results that are outputs or have other readers; (2) element types for which
         runtimes have no DepthToSpace.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.operators.concat_interleave import OPERATOR
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.tensors.interleave import interleaving_of

RUNNABLE = (
    *(ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16),
    *(ir.DataType.INT8, ir.DataType.UINT8),
)
"""Element types for which ONNX Runtime has DepthToSpace and SpaceToDepth."""


_interleaved = op(OPERATOR.name, var("first"), rest=True, domain=OPERATOR.domain)


@rule(one_of(op("Reshape", var("wide"), rest=True), _interleaved), same_shape=True)
def nested_interleavings(m: Match, b: Builder) -> Replacement:
    """Replace two nested interleavings by Concat and DepthToSpace."""
    y = m.root.outputs[0]
    walk = m.walk()
    outer = interleaving_of(y, m.constants, walk)
    if outer is None or y.shape is None or len(y.shape) != 4 or outer.axis not in (2, 3):  # needs 1
        return None
    interleavings = [interleaving_of(value, m.constants, walk) for value in outer.values]
    known_interleavings = [inner for inner in interleavings if inner is not None]
    size = len(outer.values)
    if len(known_interleavings) < size:
        return None
    if any(
        inner.axis != 5 - outer.axis or len(inner.values) != size for inner in known_interleavings
    ):
        return Miss(
            "an operand is not interleaved from equally many tensors along the other spatial axis"
        )
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    if y.dtype not in RUNNABLE:  # keeps 2
        return Miss(f"runtimes have no DepthToSpace of {y.dtype}")
    groups = [inner.values for inner in known_interleavings]
    # DepthToSpace counts rows first: block i * size + j holds row i, column j.
    blocks = groups if outer.axis == 2 else zip(*groups, strict=True)
    images = [image for block in blocks for image in block]
    joined = b.op("Concat", *images, axis=1)  # needs 2
    return b.op("DepthToSpace", joined, blocksize=size, mode="DCR")


concat_to_pixel_shuffle = rule_pass(
    "concat_to_pixel_shuffle",
    __doc__,
    [nested_interleavings],
    exactness=EXACT,
    source="Core ML MIL: common::concat_to_pixel_shuffle",
)
