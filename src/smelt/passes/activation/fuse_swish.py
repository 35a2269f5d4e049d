"""Fuse ``x * sigmoid(x)`` into one ``Swish``.

    before   x ─┬─> Sigmoid ─> s ─┐          after   x ─> Swish ─> y
                └─────────────────┴─> Mul ─> y

Needs    (1) opset 24, where Swish begins. ONNX Runtime 1.31 runs it there by its function body,
         and cannot run it at later opsets.
Keeps    (1) a Sigmoid with other readers; (2) x * sigmoid(z) where z is not x.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass

LAST_RUN = 24
"""The newest opset at which ONNX Runtime 1.31 runs Swish."""

_x = var("x")


@rule(op("Mul", _x, op("Sigmoid", _x), commutative=True), min_opset=24)  # needs 1, keeps 1, 2
def swish(m: Match, b: Builder) -> Replacement:
    """Replace ``x * sigmoid(x)`` by Swish."""
    if m.opset > LAST_RUN:
        return Miss(f"no runtime has Swish of opset {m.opset}")
    return b.op("Swish", m["x"], alpha=1.0)


fuse_swish = rule_pass(
    "fuse_swish", __doc__, [swish], exactness=rounding(4, relative=4), source="jax2onnx"
)
