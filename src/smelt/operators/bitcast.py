"""``smelt.Bitcast``: the bits of numbers, read as numbers of another type of the same width.

ONNX has such an operator only from opset 26, so the body computes it: a float is a sign, an
exponent and a significand, which arithmetic in double precision separates and recombines without
rounding. Every number keeps its bits, including subnormal ones and -0. Arithmetic cannot see the
sign and the payload of a NaN: ONNX nodes give the bits of the plain quiet NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import (
    Arguments,
    Attribute,
    Attributes,
    Computed,
    Operator,
    Result,
    int_of,
)
from smelt.operators.inputs import present

INT64, UINT64, DOUBLE = ir.DataType.INT64, ir.DataType.UINT64, ir.DataType.DOUBLE


@dataclass(frozen=True)
class Format:
    """A binary floating-point format in the layout of IEEE 754."""

    exponent: int
    mantissa: int

    @property
    def bias(self) -> int:
        """Return the bias that is added to an exponent before it is stored."""
        return (1 << self.exponent - 1) - 1

    @property
    def special(self) -> int:
        """Return the stored exponent of infinities and NaN."""
        return (1 << self.exponent) - 1


FORMATS = {
    ir.DataType.FLOAT16: Format(5, 10),
    ir.DataType.BFLOAT16: Format(8, 7),
    ir.DataType.FLOAT: Format(8, 23),
    ir.DataType.DOUBLE: Format(11, 52),
}

UNSIGNED = {8: ir.DataType.UINT8, 16: ir.DataType.UINT16, 32: ir.DataType.UINT32, 64: UINT64}


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the shape of the input with the type ``to``."""
    (x,) = inputs
    if x is None:
        raise ValueError("Bitcast takes one operand")
    to = _target(attributes)
    dtypes = [to] if x.dtype is None else [to, x.dtype]
    for dtype in dtypes:
        if dtype not in FORMATS and not (dtype.is_integer() and dtype.bitwidth >= 8):
            raise ValueError(f"Bitcast takes integers and floats, not {dtype.name.lower()}")
    if x.dtype is not None and x.dtype.bitwidth != to.bitwidth:
        raise ValueError(f"{x.dtype.name.lower()} and {to.name.lower()} differ in width")
    return (Result(to, x.shape),)


def _target(attributes: Attributes) -> ir.DataType:
    """Return the element type of the attribute ``to``."""
    return ir.DataType(int_of(attributes, "to"))


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the same memory with another dtype."""
    (x,) = present(inputs)
    return (np.ascontiguousarray(x).reshape(x.shape).view(_target(attributes).numpy()),)


def body(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...]:
    """Build a Cast between integers; with a float on either side, go through its bits as int64."""
    (x,) = present(inputs)
    assert x.dtype is not None
    to = _target(attributes)
    if x.dtype not in FORMATS and to not in FORMATS:
        return (_cast(b, x, to),)
    if x.dtype in FORMATS:
        bits = _bits_of_float(b, x, FORMATS[x.dtype])
    else:
        # Unsigned first, so that the higher bits are 0.
        bits = _cast(b, _cast(b, x, UNSIGNED[x.dtype.bitwidth]), INT64)
    return (_float_of_bits(b, bits, to) if to in FORMATS else _cast(b, bits, to),)


def _cast(b: Builder, x: ir.Value, to: ir.DataType) -> ir.Value:
    """Build a Cast of ``x`` to ``to``."""
    return b.op("Cast", x, to=int(to))


def _bits_of_float(b: Builder, x: ir.Value, form: Format) -> ir.Value:
    """Build the bits of the float ``x`` as int64.

    For a finite ``x``, with e its exponent and s = ``|x| * 2^(mantissa - e)`` its significand:

        bits = s + (e - lowest) * 2^mantissa, and the sign bit if x is negative
    """
    zero, lowest = b.constant(np.float64(0)), 1 - form.bias
    as_double = _cast(b, x, DOUBLE)
    magnitude = b.op("Abs", as_double)
    finite = b.op("Less", magnitude, b.constant(np.float64(np.inf)))
    magnitude = b.op("Where", finite, magnitude, zero)
    exponent = _exponent(b, magnitude, form, lowest)
    shift = b.op("Sub", b.const_i64(form.mantissa), exponent)
    significand = _times_power_of_two(b, magnitude, shift, form)
    if form.mantissa > 23:
        significand, exponent = _corrected(b, significand, exponent, lowest)
    # The hidden bit of a normal number adds the 1 by which its stored exponent is higher.
    stored_exponent = b.op("Sub", exponent, b.const_i64(lowest))
    bits = b.op(
        "Add",
        _cast(b, significand, INT64),
        b.op("Mul", stored_exponent, b.const_i64(1 << form.mantissa)),
    )
    infinite = form.special << form.mantissa
    nan = b.const_i64(infinite + (1 << form.mantissa - 1))
    infinity_or_nan = b.op("Where", b.op("IsNaN", as_double), nan, b.const_i64(infinite))
    bits = b.op("Where", finite, bits, infinity_or_nan)
    # A reciprocal tells -0 from 0.
    reciprocal = b.op("Div", b.constant(np.float64(1)), as_double)
    negative = b.op("Or", b.op("Less", as_double, zero), b.op("Less", reciprocal, zero))
    # The sign of a double is the sign bit of int64.
    sign = -(1 << 63) if form.mantissa > 23 else 1 << form.exponent + form.mantissa
    return b.op("Add", bits, b.op("Mul", _cast(b, negative, INT64), b.const_i64(sign)))


def _exponent(b: Builder, magnitude: ir.Value, form: Format, lowest: int) -> ir.Value:
    """Build the exponent of finite numbers as int64, ``lowest`` for subnormal ones and 0."""
    log = b.op("Mul", b.op("Log", magnitude), b.constant(np.float64(1 / np.log(2))))
    if form.mantissa <= 23:
        # 2**-26 is more than the error of Log, so the logarithm of a power of two is not rounded
        # down, and less than the gap to the logarithm of the next smaller float.
        log = b.op("Add", log, b.constant(np.float64(2.0**-26)))
    return _cast(b, b.op("Max", b.op("Floor", log), b.constant(np.float64(lowest))), INT64)


def _corrected(
    b: Builder, significand: ir.Value, exponent: ir.Value, lowest: int
) -> tuple[ir.Value, ir.Value]:
    """Build significand and exponent of doubles, corrected where rounding of the logarithm made the
    exponent wrong by one: the significand of a normal number is from 2^52 to 2^53."""
    high = b.op("GreaterOrEqual", significand, b.constant(np.float64(2.0**53)))
    low = b.op("Less", significand, b.constant(np.float64(2.0**52)))
    low = b.op("And", low, b.op("Greater", exponent, b.const_i64(lowest)))
    correction = b.op("Sub", _cast(b, high, INT64), _cast(b, low, INT64))
    factors = b.constant(np.array([2.0, 1.0, 0.5]))
    factor = b.op("Gather", factors, b.op("Add", correction, b.const_i64(1)))
    return b.op("Mul", significand, factor), b.op("Add", exponent, correction)


def _float_of_bits(b: Builder, bits: ir.Value, to: ir.DataType) -> ir.Value:
    """Build the floats whose bits are the lowest bits of an int64."""
    form = FORMATS[to]
    unsigned = _cast(b, bits, UINT64)

    def field(start: int, width: int) -> ir.Value:
        """Return the unsigned field of ``width`` bits that begins at bit ``start``."""
        shifted = b.op("BitShift", unsigned, b.constant(np.uint64(start)), direction="RIGHT")
        mask = b.constant(np.uint64((1 << width) - 1))
        return _cast(b, b.op("BitwiseAnd", shifted, mask), INT64)

    stored, fraction = field(form.mantissa, form.exponent), field(0, form.mantissa)
    subnormal = _cast(b, b.op("Equal", stored, b.const_i64(0)), INT64)
    hidden = b.op("Mul", b.op("Sub", b.const_i64(1), subnormal), b.const_i64(1 << form.mantissa))
    exponent = b.op("Sub", b.op("Add", stored, subnormal), b.const_i64(form.bias + form.mantissa))
    magnitude = _times_power_of_two(
        b, _cast(b, b.op("Add", fraction, hidden), DOUBLE), exponent, form
    )
    infinite, nan = b.constant(np.float64(np.inf)), b.constant(np.float64(np.nan))
    special = b.op("Where", b.op("Equal", fraction, b.const_i64(0)), infinite, nan)
    magnitude = b.op("Where", b.op("Equal", stored, b.const_i64(form.special)), special, magnitude)
    sign = b.op("Gather", b.constant(np.array([1.0, -1.0])), field(to.bitwidth - 1, 1))
    return _cast(b, b.op("Mul", magnitude, sign), to)


def _times_power_of_two(b: Builder, x: ir.Value, exponent: ir.Value, form: Format) -> ir.Value:
    """Build ``x * 2**exponent`` by table lookup, in two steps where one factor could overflow."""
    if form.mantissa <= 23:
        steps, reach = [exponent], form.bias + form.mantissa
    else:
        half = b.op("Div", exponent, b.const_i64(2))
        steps, reach = [half, b.op("Sub", exponent, half)], (form.bias + form.mantissa) // 2 + 1
    table = b.constant(np.ldexp(1.0, np.arange(-reach, reach + 1)))
    for step in steps:
        x = b.op("Mul", x, b.op("Gather", table, b.op("Add", step, b.const_i64(reach))))
    return x


OPERATOR = Operator(
    domain="smelt",
    name="Bitcast",
    summary="The bits of numbers as numbers of another type of the same width",
    inputs=("x",),
    outputs=("y",),
    attributes=(Attribute("to", ir.AttributeType.INT, required=True),),
    infer=infer,
    reference=reference,
    body=body,
    any_rank=True,
)
