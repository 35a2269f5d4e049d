"""Fuse ``max(x, alpha * x)`` or ``where(x > 0, x, alpha * x)`` into one ``LeakyRelu``.

    before   x ─┬─> Mul(·, alpha) ─┐                     after   x ─> LeakyRelu(alpha) ─> y
                └──────────────────┴─> Max ─> y

Needs    (1) one constant alpha that a float32 attribute holds exactly; (2) in the form with Max,
         an alpha of at most 1, and not 0, because max(inf, 0 * inf) is NaN. The form with Where
         may have any alpha.
Keeps    (1) float64 and integers, for which runtimes have no kernel; (2) a Max of more than two
         inputs; (3) an alpha for each channel.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import Pattern, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.activation.float32_attribute import as_float32
from smelt.passes.base import rounding, rule_pass

KERNELS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
"""Dtypes for which ONNX Runtime computes LeakyRelu and PRelu, by a kernel or with casts."""

_x = var("x")
_scaled = op("Mul", _x, const(name="alpha"), commutative=True)


def compared(over: str, under: str) -> Pattern:
    """Match ``x > 0`` or ``0 < x`` (``over`` Greater, ``under`` Less), also with OrEqual."""
    zero = const(0.0, ulp=0)
    return one_of(op([over, over + "OrEqual"], _x, zero), op([under, under + "OrEqual"], zero, _x))


@rule(op("Max", _x, _scaled, commutative=True))  # keeps 2
def larger(m: Match, b: Builder) -> Replacement:
    """Replace ``max(x, alpha * x)`` by LeakyRelu."""
    alpha = as_float32(m.array("alpha"))  # needs 1, keeps 3
    if isinstance(alpha, Miss):
        return alpha
    if alpha > 1 or alpha == 0:  # needs 2
        return Miss(f"max(x, {alpha} * x) is no LeakyRelu: the factor is 0 or above 1")
    return _leaky_relu(m, b, alpha)


@rule(
    one_of(
        op("Where", compared("Greater", "Less"), _x, _scaled),
        op("Where", compared("Less", "Greater"), _scaled, _x),
    ),
    min_opset=16,
)
def chosen_by_sign(m: Match, b: Builder) -> Replacement:
    """Replace ``where(x > 0, x, alpha * x)`` by LeakyRelu."""
    alpha = as_float32(m.array("alpha"))
    return alpha if isinstance(alpha, Miss) else _leaky_relu(m, b, alpha)


def _leaky_relu(m: Match, b: Builder, alpha: float) -> Replacement:
    """Return LeakyRelu of x; a Miss if runtimes have no kernel for its dtype."""
    # keeps 1
    if m["x"].dtype not in KERNELS or (m["x"].dtype == ir.DataType.BFLOAT16 and m.opset < 16):
        return Miss(f"LeakyRelu of {m['x'].dtype} has no kernel")
    return b.op("LeakyRelu", m["x"], alpha=alpha)


fuse_leaky_relu = rule_pass(
    "fuse_leaky_relu",
    __doc__,
    [larger, chosen_by_sign],
    exactness=rounding(1, relative=1),
    source="Core ML MIL: common::fuse_leaky_relu",
)
