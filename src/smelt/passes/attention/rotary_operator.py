"""Build ``RotaryEmbedding`` nodes from x and the cosines and sines of its pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.rule import Match, Miss
from smelt.passes.attention.rotary_angles import angles_of
from smelt.passes.first_opsets import opset_miss

TYPES = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
"""Dtypes for which ONNX Runtime has a RotaryEmbedding kernel."""


def rotated(
    x: ir.Value, m: Match, b: Builder, cos: ir.Value, sin: ir.Value, interleaved: bool
) -> ir.Value | Miss:
    """Return x rotated by a RotaryEmbedding; a Miss if the angles or the opset do not fit."""
    angles = angles_of(x, cos, sin)
    if angles is None:  # fuse_rotary_embedding needs 5
        return Miss(
            "the angles are not B,S,D/2 or S,D/2: one row for each position, equal for all heads"
        )
    if early := opset_miss(m, "RotaryEmbedding"):  # fuse_rotary_embedding needs 1
        return early
    angle_operands = angles.operands(b)
    order = [ir.AttrInt64("interleaved", 1)] if interleaved else []
    if angles.rows == 2:
        return rotary_of([x, *angle_operands], order, b)
    heads, size = angles.heads, angles.size
    if not isinstance(heads, int):
        return Miss("the head count is not constant")
    flat = b.op("Reshape", x, b.const_i64([0, 0, heads * size]))  # B,S,H,D to B,S,H*D
    rotated = rotary_of([flat, *angle_operands], [*order, ir.AttrInt64("num_heads", heads)], b)
    return b.op("Reshape", rotated, b.const_i64([0, 0, heads, size]))


def rotary_of(
    inputs: Sequence[ir.Value | None], attributes: Iterable[ir.Attr], b: Builder
) -> ir.Value:
    """Return the result of one new ``RotaryEmbedding`` node."""
    return b.add(ir.Node("", "RotaryEmbedding", inputs, attributes))[0]
