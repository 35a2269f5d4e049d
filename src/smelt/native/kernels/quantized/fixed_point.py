"""Requantization without floats: an integer multiplier and a shift for each scale.

As in gemmlowp and TensorFlow Lite, the high half of the doubled product is rounded, then the shift
rounds again, each to nearest, halves away from zero. A byte is within one step of the result of
floats. CPUs without a floating-point unit need no float library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.operands import Requantization
from smelt.native.types import C_TYPES
from smelt.program.instruction import Program
from smelt.program.quantized import ADD, MEAN, MUL, SOFTMAX

FIXED = "fixed_point"
"""The attribute of instructions that are computed in fixed point."""

OPERATORS = frozenset({"QLinearConv", "QLinearMatMul", ADD, MUL, MEAN, SOFTMAX})

SCALED = """static inline int32_t high_product(int32_t a, int32_t b)
{
    const int64_t product = (int64_t)a * b;
    const int64_t half = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    return (int32_t)((product + half) / ((int64_t)1 << 31));
}
static inline int32_t fixed_point(int32_t value, int32_t multiplier, int32_t shift)
{
    if (shift > 0) {
        const int64_t wide = (int64_t)value * ((int64_t)1 << shift);
        value = wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
        return high_product(value, multiplier);
    }
    const int32_t high = high_product(value, multiplier);
    const int32_t ones = (int32_t)(((int64_t)1 << -shift) - 1);
    return (high >> -shift) + ((high & ones) > (ones >> 1) + (high < 0));
}
static inline int32_t fixed_byte(int32_t value, int32_t multiplier, int32_t shift, int32_t zero,
    int32_t low)
{
    const int32_t scaled = fixed_point(value, multiplier, shift);
    const int32_t least = low - zero, most = low + 255 - zero;
    return (scaled < least ? least : scaled > most ? most : scaled) + zero;
}
"""


def use_fixed_point(program: Program) -> None:
    """Mark each instruction on quantized numbers as computed in fixed point, bodies included."""
    for body in program.bodies:
        use_fixed_point(body.program)
    for step in program.instructions:
        if step.op in OPERATORS:
            step.attributes = {**step.attributes, FIXED: True}


def is_fixed(instance: Instance) -> bool:
    """True if an instruction is marked to be computed in fixed point, not in floats."""
    return bool(instance.instruction.attributes.get(FIXED))


def multiplier_of(factor: float) -> tuple[int, int]:
    """Return a multiplier below 2**31 and a left shift: ``factor == multiplier * 2**(shift - 31)``.

    0.75 gives ``(3 * 2**29, 0)``. A factor that is too small to change a sum becomes 0.
    """
    part, shift = math.frexp(factor)
    multiplier = round(part * 2**31)
    if multiplier == 2**31:
        multiplier, shift = 2**30, shift + 1
    if shift < -31:
        return 0, 0
    return (2**31 - 1, 30) if shift > 30 else (multiplier, shift)


@dataclass(frozen=True)
class FixedPoint:
    """The C names of arrays with a multiplier, a shift and a zero point per filter or column.

    ``zeros`` is "" if all zero points equal ``zero``. ``low`` is the lowest byte.
    """

    multipliers: str
    shifts: str
    zero: int
    low: int
    zeros: str = ""

    def byte(self, value: str, channel: str) -> str:
        """Return the C that requantizes the sum ``value`` to a byte."""
        scale = f"{self.multipliers}[{channel}], {self.shifts}[{channel}]"
        zero = f"{self.zeros}[{channel}]" if self.zeros else self.zero
        return f"fixed_byte({value}, {scale}, {zero}, {self.low})"


def fixed_point(cx: KernelContext, scaled: Requantization) -> FixedPoint:
    """Return the arrays for the factors, and declare them and ``fixed_byte``.

    With factors above 1, a fraction of a step of the sums can exceed a step of the result; the zero
    points then include these.
    """
    declare(cx)
    pairs = np.array([multiplier_of(float(factor)) for factor in scaled.exact], np.int32)
    type_ = C_TYPES[ir.DataType.INT32]
    multipliers, shifts = (cx.constant(pairs[:, i].copy(), type_) for i in range(2))
    low, fractions = -128 if scaled.signed else 0, scaled.fractions
    fraction_steps = np.zeros(1) if fractions is None else np.rint(fractions * scaled.exact)
    zeros = (
        cx.constant((fraction_steps + scaled.zero).astype(np.int32), type_)
        if fraction_steps.any()
        else ""
    )
    return FixedPoint(multipliers, shifts, scaled.zero, low, zeros)


def declare(cx: KernelContext) -> None:
    """Let the kernel call ``fixed_point`` and ``fixed_byte``."""
    cx.call("fixed_point", SCALED)


def scaled(value: str, factor: float) -> str:
    """Return ``value`` times a factor, as C."""
    multiplier, shift = multiplier_of(factor)
    return f"fixed_point({value}, {multiplier}, {shift})"


def scaled_byte(value: str, factor: float, zero: int, signed: bool) -> str:
    """Return the byte of ``value`` times a factor, as C."""
    multiplier, shift = multiplier_of(factor)
    return f"fixed_byte({value}, {multiplier}, {shift}, {zero}, {-128 if signed else 0})"
