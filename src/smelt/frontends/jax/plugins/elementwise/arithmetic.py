"""Lower elementwise operators of two and three operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers
from smelt.ir.constants import tensor_of

BOOL = ir.DataType.BOOL

NUMERIC = {
    "add": ("Add", "Or"),
    "add_any": ("Add", "Or"),
    "sub": ("Sub", None),
    "and": ("BitwiseAnd", "And"),
    "or": ("BitwiseOr", "Or"),
    "xor": ("BitwiseXor", "Xor"),
    "eq": ("Equal", "Equal"),
    "gt": ("Greater", None),
    "ge": ("GreaterOrEqual", None),
    "lt": ("Less", None),
    "le": ("LessOrEqual", None),
}
"""The ONNX operator of each primitive for numbers, and for booleans if there is one."""


def _lower(on_numbers: str, on_booleans: str | None) -> Callable[..., ir.Value]:
    """Return the lowering to ``on_numbers``, or to ``on_booleans`` for booleans."""

    def lower(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
        """Lower to the operator for numbers or for booleans."""
        if a.dtype != BOOL:
            return cx.op(on_numbers, a, b)
        if on_booleans is not None:
            return cx.op(on_booleans, a, b)
        # ONNX cannot compare booleans by order; as integers they compare as in JAX.
        return cx.op(on_numbers, cx.cast(a, ir.DataType.INT32), cx.cast(b, ir.DataType.INT32))

    return lower


for _primitive, _names in NUMERIC.items():
    lowers(_primitive, broadcasts=True)(_lower(*_names))


EXTREMES = {"max": ("Max", "Or"), "min": ("Min", "And")}
"""The ONNX operator for numbers and for booleans."""


@lowers("max", "min", broadcasts=True)
def max_or_min(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Lower ``max`` and ``min`` to Max and Min, or to Or and And for booleans."""
    return extreme(cx, str(cx.equation.primitive.name), a, b)


def extreme(cx: Lowering, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the ``max`` or ``min`` of two arrays."""
    on_numbers, on_booleans = EXTREMES[name]
    return cx.op(on_booleans if a.dtype == BOOL else on_numbers, a, b)


@lowers("mul", broadcasts=True)
def mul(cx: Lowering, a: ir.Value, b: ir.Value, *, out_dtype: object) -> ir.Value:
    """Multiply in the result type, which may be wider than the operand type.

    A float times a cast boolean becomes a Where, as in XLA.
    """
    to = np.dtype(cx.avals_out[0].dtype)
    if to in MASKED:
        for position, factor in ((0, b), (1, a)):
            if (mask := _mask(cx, position)) is not None:
                factor = cx.cast(factor, to)  # noqa: PLW2901 - the number that the mask selects
                return cx.op("Where", mask, factor, cx.const_like(0, factor))
    return cx.op("And" if a.dtype == BOOL else "Mul", cx.cast(a, to), cx.cast(b, to))


MASKED = frozenset(map(np.dtype, ("float16", "float32", "float64")))
"""The types in which XLA turns a product with booleans into a select: NaN times False is 0.

XLA keeps the product in bfloat16 (computed in float32), and where the booleans are broadcast
after their conversion.
"""


def _mask(cx: Lowering, position: int) -> ir.Value | None:
    """Return the booleans from which operand ``position`` was cast.

    None if it was not cast from booleans, or if its shape is not the result's.
    """
    operand = cx.operands[position]
    node = operand.value.producer()
    if node is None or node.op_type != "Cast" or operand.shape != tuple(cx.avals_out[0].shape):
        return None
    source = node.inputs[0]
    return source if source is not None and source.dtype == BOOL else None


@lowers("ne", broadcasts=True)
def ne(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Lower ``ne`` to Not(Equal)."""
    return cx.op("Not", cx.op("Equal", a, b))


@lowers("pow", broadcasts=True)
def pow_(cx: Lowering, x: ir.Value, y: ir.Value) -> ir.Value:
    """Lower ``pow`` to Pow."""
    return cx.op("Pow", x, y)


@lowers("div", broadcasts=True)
def div(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Divide; integers truncate, a zero divisor gives all bits set (-1 if signed), and lowest / -1
    wraps, as in XLA."""
    if not _needs_guard(a, b):
        return cx.op("Div", a, b)
    zero, safe = _safe_divisor(cx, b)
    quotient = cx.op("Div", a, safe)
    if _is_signed(b):
        opposite = cx.op("Equal", b, cx.const_like(-1, b))
        quotient = where(cx, opposite, cx.op("Neg", a), quotient)
    return where(cx, zero, _all_ones(cx, a), quotient)


@lowers("rem", broadcasts=True)
def rem(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the remainder, which has the sign of the dividend.

    A divisor of 0 gives the dividend, as in XLA.
    """
    if not _needs_guard(a, b):
        return cx.op("Mod", a, b, fmod=1)
    zero, safe = _safe_divisor(cx, b)
    return where(cx, zero, a, cx.op("Mod", a, safe, fmod=1))


def _needs_guard(a: ir.Value, b: ir.Value) -> bool:
    """True for integers, unless the divisor is a constant that contains neither 0 nor -1."""
    if a.dtype is None or not a.dtype.is_integer():
        return False
    tensor = tensor_of(b)
    if tensor is None:
        return True
    return bool(np.isin(tensor.numpy(), (0, -1)).any())


def _safe_divisor(cx: Lowering, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the mask of zeros in ``b``, and ``b`` with 1 in place of 0 and -1.

    Processors trap on a division by 0 and on lowest / -1.
    """
    zero = cx.op("Equal", b, cx.const_like(0, b))
    trapping = zero
    if _is_signed(b):
        trapping = cx.op("Or", zero, cx.op("Equal", b, cx.const_like(-1, b)))
    return zero, where(cx, trapping, cx.const_like(1, b), b)


def _is_signed(x: ir.Value) -> bool:
    """True if the type of ``x`` has a sign."""
    return x.dtype is not None and x.dtype.is_signed()


def _all_ones(cx: Lowering, like: ir.Value) -> ir.Value:
    """Return the constant with all bits set: -1, or the greatest unsigned number."""
    assert like.dtype is not None
    return cx.constant(np.asarray(-1).astype(like.dtype.numpy()))


@lowers("select_n", broadcasts=True)
def select_n(cx: Lowering, which: ir.Value, *cases: ir.Value) -> ir.Value | Operand:
    """Return ``cases[which]`` element by element; ``which`` holds booleans or integers."""
    if all(case is cases[0] for case in cases):  # All cases are one value.
        return cx.operands[-1]
    if which.dtype == BOOL:
        return where(cx, which, cases[-1], cases[0])
    result = cases[-1]
    for index in reversed(range(len(cases) - 1)):
        is_case = cx.op("LessOrEqual", which, cx.const_like(index, which))
        result = where(cx, is_case, cases[index], result)
    return result


def where(cx: Lowering, test: ir.Value, yes: ir.Value, no: ir.Value) -> ir.Value:
    """Return Where(test, yes, no), or the value itself if both are the same."""
    return yes if yes is no else cx.op("Where", test, yes, no)


@lowers("clamp", broadcasts=True)
def clamp(cx: Lowering, low: ir.Value, x: ir.Value, high: ir.Value) -> ir.Value:
    """Clamp by Max and Min, which propagate NaN as JAX does; Clip need not."""
    return extreme(cx, "min", extreme(cx, "max", x, low), high)


@lowers("atan2", broadcasts=True)
def atan2(cx: Lowering, y: ir.Value, x: ir.Value) -> ir.Value:
    """Return the angle of (x, y): atan(smaller / larger magnitude), moved into the right octant.

    In the first octant (0 <= y <= x), that is the angle. ``complement`` mirrors it at the diagonal,
    ``is_left`` at the y axis, and ``is_below`` at the x axis.
    """
    zero = cx.const_like(0, x)
    abs_y, abs_x = cx.op("Abs", y), cx.op("Abs", x)
    low, high = cx.op("Min", abs_y, abs_x), cx.op("Max", abs_y, abs_x)
    # 0/0 and inf/inf: both magnitudes are equal, so the ratio is 0 or 1.
    same = cx.op("Cast", cx.op("Greater", high, zero), to=int(x.dtype or 1))
    ratio = cx.op("Where", cx.op("Equal", low, high), same, cx.op("Div", low, high))
    angle = cx.op("Atan", ratio)
    complement = cx.op("Sub", cx.const_like(np.pi / 2, x), angle)
    angle = cx.op("Where", cx.op("Greater", abs_y, abs_x), complement, angle)
    # A point is left of the y axis for x < 0 or x = -0, below the x axis for y < 0 or y = -0.
    is_left = cx.op("Or", cx.op("Less", x, zero), is_negative_zero(cx, x))
    angle = cx.op("Where", is_left, cx.op("Sub", cx.const_like(np.pi, x), angle), angle)
    is_below = cx.op("Or", cx.op("Less", y, zero), is_negative_zero(cx, y))
    return cx.op("Where", is_below, cx.op("Neg", angle), angle)


def is_negative_zero(cx: Lowering, x: ir.Value) -> ir.Value:
    """True where ``x`` is -0: it equals 0, and its reciprocal is -inf, not +inf."""
    inverse = cx.op("Less", cx.op("Reciprocal", x), cx.const_like(0, x))
    return cx.op("And", cx.op("Equal", x, cx.const_like(0, x)), inverse)
