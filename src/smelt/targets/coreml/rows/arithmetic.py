"""Rows for arithmetic, comparisons, logic, selection and casts."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.facts import INTEGERS, NARROW
from smelt.targets.coreml.half_constants import MASK, is_beyond_half
from smelt.targets.coreml.masks import is_masked_product
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val

ARITHMETIC = {"Add": "add", "Sub": "sub"}
CHAINS = {"Max": "maximum", "Min": "minimum", "Sum": "add"}
COMPARISONS = {
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
}
LOGIC = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor"}


@writes(*ARITHMETIC)
def arithmetic(c: Call) -> None:
    """Write one operation of two operands."""
    c.done(wrapped(c, c.write(ARITHMETIC[c.node.op_type], x=c.x(0), y=c.x(1))))


@writes("Mul")
def multiply(c: Call) -> None:
    """Write a product.

    A mask of scores, such as ``(1 - m) * -1e9``, is computed in float32 and then clamped, because
    its number exceeds float16.
    """
    arrays = [array for array in map(c.array, (0, 1)) if array is not None]
    if c.half and any(map(is_beyond_half, arrays)) and is_masked_product(c.node):
        c.widen()
        product = c.op("mul", c.x(0), c.x(1))
        c.facts.clamped[c.node.outputs[0].name or ""] = c.node.name or "Mul"
        c.done(c.write("clip", x=product, alpha=MASK, beta=-MASK))
        return
    c.done(wrapped(c, c.write("mul", x=c.x(0), y=c.x(1))))


def wrapped(c: Call, result: Val) -> Val:
    """Return ``result`` wrapped to the range of the node's type, if that has 8 or 16 bits.

    MIL computes such integers in int32. Wrapped is ``(result - low) mod (high - low + 1) + low``.
    """
    target = c.node.outputs[0].dtype
    if target is None or target not in NARROW:
        return result
    low, high = RANGES[target]
    shifted = c.op("mod", c.op("sub", result, low), high - low + 1)
    return c.op("add", shifted, low)


@writes(*CHAINS, "Mean")
def chain(c: Call) -> None:
    """Write Max, Min, Sum or Mean as operations of two operands; Mean divides the sum."""
    count = len(c.node.inputs)
    total = c.x(0)
    for index in range(1, count):
        total = c.op(CHAINS.get(c.node.op_type, "add"), total, c.x(index))
    c.done(c.op("real_div", total, float(count)) if c.node.op_type == "Mean" else total)


@writes("Div")
def divide(c: Call) -> None:
    """Write a quotient.

    ONNX rounds integer quotients towards 0 and MIL rounds them down. So the quotient of |x| by |y|
    is multiplied by both signs, unless both operands are known to be 0 or more.
    """
    divisor = c.array(1)
    if divisor is not None and divisor.dtype.kind == "f" and divisor.size == 1:
        c.widen_for(float(divisor.reshape(())))
    x, y = c.x(0), c.x(1)
    if x.is_float:
        c.done(c.write("real_div", x=x, y=y))
        return
    if c.most_bits(0) is not None and c.most_bits(1) is not None:
        c.done(c.write("floor_div", x=x, y=y))
        return
    quotient = c.op("floor_div", c.op("abs", x), c.op("abs", y))
    c.done(wrapped(c, c.op("mul", quotient, c.op("mul", c.op("sign", x), c.op("sign", y)))))


@writes("Mod")
def modulo(c: Call) -> None:
    """Write mod, whose result has the sign of the divisor, as in ONNX.

    With fmod=1, the result has the sign of the dividend: ``sign(x) * (|x| mod |y|)``.
    """
    x, y = c.x(0), c.x(1)
    if not c.attribute("fmod"):
        c.done(c.write("mod", x=x, y=y))
        return
    rest = c.op("mod", c.op("abs", x), c.op("abs", y))
    c.done(c.op("mul", rest, c.op("sign", x)))


@writes("Pow")
def power(c: Call) -> None:
    """Write a power. The exponents 2 and 3 become products and the base 2 exp2, since Core ML
    computes these powers inexactly."""
    c.refuse_narrow("a power")
    base, exponent = c.array(0), c.array(1)
    x = c.x(0)
    if not x.is_float and c.dtype(1) not in INTEGERS:
        raise Refused(
            "an integer to the power of a float has no exact form", "cast the base to float"
        )
    number = exponent.item() if exponent is not None and exponent.size == 1 else None
    keeps_rank = exponent is not None and exponent.ndim <= x.rank
    if number in (2, 3) and keeps_rank and number is not None:
        square = c.op("mul", x, x)
        c.done(square if number == 2 else c.op("mul", square, x))
        return
    if number == -1 and x.is_float and keeps_rank:
        c.done(c.write("real_div", x=1.0, y=x))
        return
    y = c.x(1)
    y = c.cast(y, x.element)
    if (
        base is not None
        and base.size == 1
        and base.item() == 2
        and base.ndim <= y.rank
        and x.is_float
    ):
        c.done(c.write("exp2", x=y))
        return
    c.done(c.write("pow", x=x, y=y))


@writes(*COMPARISONS)
def compare(c: Call) -> None:
    """Write a comparison."""
    c.done(c.write(COMPARISONS[c.node.op_type], x=c.x(0), y=c.x(1)))


@writes("Equal")
def equal(c: Call) -> None:
    """Write equal; for bools, which equal does not support, the negation of xor."""
    x, y = c.x(0), c.x(1)
    if x.element == Element.BOOL:
        c.done(c.write("logical_not", x=c.op("logical_xor", x, y)))
    else:
        c.done(c.write("equal", x=x, y=y))


@writes(*LOGIC)
def logic(c: Call) -> None:
    """Write a logical operation."""
    c.done(c.write(LOGIC[c.node.op_type], x=c.x(0), y=c.x(1)))


@writes("Not")
def logical_not(c: Call) -> None:
    """Write logical_not."""
    c.done(c.write("logical_not", x=c.x()))


@writes("Where")
def where(c: Call) -> None:
    """Write select."""
    a, b = c.x(1), c.x(2)
    c.done(c.select(c.x(0), a, b, a.element))


RANGES = {
    ir.DataType.INT8: (-128, 127),
    ir.DataType.UINT8: (0, 255),
    ir.DataType.INT16: (-32768, 32767),
    ir.DataType.UINT16: (0, 65535),
}


@writes("Cast")
def cast(c: Call) -> None:
    """Write cast. MIL holds integers of 8 and 16 bits in int32, so they are wrapped to their range.

    Integers that are known to be within the range, and floats, are not wrapped.
    """
    target = c.node.outputs[0].dtype
    x = c.x()
    result = c.cast(x, c.out_element())
    if target in NARROW and target is not None and c.dtype() not in (target, ir.DataType.BOOL):
        low, high = RANGES[target]
        if not x.is_float and not _is_within(c, low, high):
            result = wrapped(c, result)
    c.done(result)


def _is_within(c: Call, low: int, high: int) -> bool:
    """True if the bounds of integer operand 0 lie between ``low`` and ``high``."""
    value = c.input(0)
    bounds = None if value is None else c.facts.bounds.of(value)
    return bounds is not None and low <= bounds[0] and bounds[1] <= high


@writes("CastLike")
def cast_like(c: Call) -> None:
    """Write cast to the type of the second operand."""
    cast(c)


@writes("OneHot")
def one_hot(c: Call) -> None:
    """Write a comparison of the indices with 0, 1, ... and a choice of the two values.

    A negative index counts from the end; an index out of range selects nothing.
    """
    depth = c.ints(1)
    if not depth:
        raise Refused("its depth is computed")
    count = depth[0]
    axis = int(c.attribute("axis"))
    indices = c.x(0, Element.INT32)
    rank = indices.rank + 1
    axis %= rank
    if c.most_bits(0) is None:
        negative = c.op("less", indices, 0, element=Element.BOOL)
        indices = c.select(negative, c.op("add", indices, count), indices, Element.INT32)
    places = np.arange(count, dtype=np.int32).reshape([-1] + [1] * (rank - 1 - axis))
    hit = c.op("equal", c.expand(indices, [axis]), places, element=Element.BOOL)
    value = c.input(2)
    assert value is not None
    kind = c.element(value)
    array = c.array(2)
    if array is not None and array.tolist() == [0, 1]:
        c.done(c.cast(hit, kind))
        return
    if array is not None:
        on: Val = c.constant(array[1], kind, "on")
        off: Val = c.constant(array[0], kind, "off")
    else:
        both = c.x(2)
        off, on = (
            c.squeeze(each, [0])
            for each in c.w.ops("split", [(kind, (1,))] * 2, x=both, split_sizes=[1, 1], axis=0)
        )
    c.done(c.select(hit, on, off, kind))
