"""Turn a ``PRelu`` whose slopes are all equal into ``LeakyRelu``.

    before   x ─> PRelu(slope = [a, a, a]) ─> y          after   x ─> LeakyRelu(a) ─> y

Needs    (1) a constant slope whose elements all equal one finite number that float32 holds.
Keeps    (1) slopes that differ or have a higher rank than x, which some runtimes accept;
         (2) integers, float64.
"""

from __future__ import annotations

from smelt.ir.build import Builder
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.activation.float32_attribute import as_float32
from smelt.passes.activation.fuse_leaky_relu import KERNELS
from smelt.passes.base import EXACT, rule_pass


@rule(op("PRelu", var("x"), const(name="slope", limit=None)), min_opset=16)
def equal_slopes(m: Match, b: Builder) -> Replacement:
    """Replace a PRelu with equal slopes by LeakyRelu."""
    if m["x"].dtype not in KERNELS:  # keeps 2
        return Miss(f"LeakyRelu of {m['x'].dtype} has no kernel")
    slope, x = m["slope"].shape, m["x"].shape
    if slope is None or x is None:
        return Miss("a rank is unknown")
    if len(slope) > len(x):  # keeps 1
        return Miss("the slope has a higher rank than x")
    alpha = as_float32(m.array("slope", limit=None))  # needs 1
    return alpha if isinstance(alpha, Miss) else b.op("LeakyRelu", m["x"], alpha=alpha)


prelu_to_lrelu = rule_pass(
    "prelu_to_lrelu",
    __doc__,
    [equal_slopes],
    exactness=EXACT,
    after=("fuse_prelu",),
    source="Core ML MIL: common::prelu_to_lrelu",
)
