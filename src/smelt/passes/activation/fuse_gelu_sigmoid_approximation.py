"""Fuse ``x * sigmoid(1.702 * x)``, or with another factor, into one ``Swish``.

    before   x ─┬─> Mul(·, 1.702) ─> Sigmoid ─┐          after   x ─> Swish(alpha=1.702) ─> y
                └─────────────────────────────┴─> Mul ─> y

Needs    (1) opset 24, where Swish begins: ONNX Runtime 1.31 has no Swish for later opsets;
         (2) one factor that a float32 attribute holds exactly.
Keeps    (1) a factor for each channel; (2) a gate computed from another value; (3) inner results
         with other readers.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.activation.float32_attribute import as_float32
from smelt.passes.activation.fuse_swish import LAST_RUN
from smelt.passes.base import rounding, rule_pass

_scaled = op("Mul", var("x"), const(name="alpha"), commutative=True)


@rule(op("Mul", var("x"), op("Sigmoid", _scaled), commutative=True), min_opset=24)  # keeps 2, 3
def scaled_swish(m: Match, b: Builder) -> Replacement:
    """Replace the product and its gate by Swish with the attribute alpha."""
    if m.opset > LAST_RUN:  # needs 1
        return Miss(f"no runtime has Swish of opset {m.opset}")
    alpha = as_float32(m.array("alpha"))  # needs 2, keeps 1
    return alpha if isinstance(alpha, Miss) else b.op("Swish", m["x"], alpha=alpha)


fuse_gelu_sigmoid_approximation = rule_pass(
    "fuse_gelu_sigmoid_approximation",
    __doc__,
    [scaled_swish],
    exactness=rounding(4, relative=4),
    source="Core ML MIL: common::fuse_gelu_sigmoid_approximation",
)
