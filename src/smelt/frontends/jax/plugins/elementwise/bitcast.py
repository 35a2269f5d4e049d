"""Lower primitives that read floats as bits: bitcasts, nextafter, reduce_precision."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.elementwise.arithmetic import where
from smelt.frontends.jax.plugins.elementwise.bits import shifted, unsigned_of, widened
from smelt.frontends.jax.registry import lowers
from smelt.operators.bitcast import FORMATS


def bitcast(cx: Lowering, x: ir.Value, to: ir.DataType) -> ir.Value:
    """Return the bits of ``x`` as another type of the same width."""
    return x if x.dtype == to else cx.op("Bitcast", x, domain="smelt", to=int(to))


def word_of(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return the bits of ``x`` as uint32, or as uint64 for 64-bit types."""
    assert x.dtype is not None
    return widened(cx, bitcast(cx, x, unsigned_of(x.dtype)))


def number_of(cx: Lowering, word: ir.Value, to: ir.DataType) -> ir.Value:
    """Return the numbers of type ``to`` whose bits are the lowest bits of ``word``."""
    return bitcast(cx, cx.cast(word, unsigned_of(to)), to)


@lowers("bitcast_convert_type", broadcasts=True)
def bitcast_convert_type(cx: Lowering, x: ir.Value, *, new_dtype: object) -> ir.Value | Operand:
    """Return the bits of ``x`` as another type.

    Between types of different widths, a last dim is added or removed: it holds the narrow numbers
    of each wide one, the lowest bits first.
    """
    (source_aval,) = cx.avals_in
    (aval,) = cx.avals_out
    to = ir.DataType.from_numpy(np.dtype(aval.dtype))
    assert x.dtype is not None
    if x.dtype == to:
        return x
    for dtype in (x.dtype, to):
        if dtype not in FORMATS and not (dtype.is_integer() and dtype.bitwidth >= 8):
            raise cx.unsupported(f"the bits of {dtype.name.lower()} are not defined by ONNX")
    if x.dtype.bitwidth == to.bitwidth:
        fraction = _fraction_in(cx, x, to)
        return bitcast(cx, x, to) if fraction is None else one_plus_fraction(cx, fraction, to)
    word = word_of(cx, cx.broadcast(cx.operands[0], source_aval))
    convert = _split if x.dtype.bitwidth > to.bitwidth else _join
    result = convert(cx, word, x.dtype, to)
    return Operand(result, tuple(aval.shape))


def _fraction_in(cx: Lowering, x: ir.Value, to: ir.DataType) -> ir.Value | None:
    """Return the significand bits if ``x`` holds the bits of floats in [1, 2), else None.

    JAX draws random floats as ``bitcast(random_bits >> 9 | bits_of_one) - 1`` (9 for float32). This
    function recognizes the Or, and ``one_plus_fraction`` then replaces the bitcast.
    """
    form, node = FORMATS.get(to), x.producer()
    if to not in EXACT or form is None or node is None or node.op_type != "BitwiseOr":
        return None
    bits_of_one = form.bias << form.mantissa
    first, second = (value for value in node.inputs if value is not None)
    for fraction, bits in ((first, second), (second, first)):
        array = cx.known(bits)
        if array is not None and not array.ndim and int(array) == bits_of_one:
            return fraction if _shifted_by(cx, fraction) >= to.bitwidth - form.mantissa else None
    return None


def _shifted_by(cx: Lowering, word: ir.Value) -> int:
    """Return the smallest number of leading zero bits that a right shift gave ``word``, or 0."""
    node = word.producer()
    if node is None or node.op_type != "BitShift" or node.inputs[1] is None:
        return 0
    amount = cx.known(node.inputs[1])
    is_right = node.attributes["direction"].as_string() == "RIGHT"
    return int(amount.min()) if is_right and amount is not None and amount.size else 0


EXACT = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""Float types for which every runtime has Cast from integers and Add."""


def one_plus_fraction(cx: Lowering, fraction: ir.Value, to: ir.DataType) -> ir.Value:
    """Return ``1 + fraction / 2^m``, where m is the number of significand bits of the type ``to``.

    ``fraction`` has at most m bits, so no step rounds.
    """
    scale = cx.constant(np.asarray(2.0 ** -FORMATS[to].mantissa, to.numpy()))
    return cx.op(
        "Add", cx.op("Mul", cx.cast(fraction, to), scale), cx.constant(np.asarray(1, to.numpy()))
    )


def _split(cx: Lowering, word: ir.Value, source: ir.DataType, to: ir.DataType) -> ir.Value:
    """Return each word as a row of narrower numbers along a new last dim, lowest bits first."""
    assert word.dtype is not None
    starts = np.arange(0, source.bitwidth, to.bitwidth, dtype=word.dtype.numpy())
    column = cx.op("Unsqueeze", word, cx.const_i64([-1]))
    parts = cx.op("BitShift", column, cx.constant(starts), direction="RIGHT")
    return number_of(cx, parts, to)


def _join(cx: Lowering, word: ir.Value, source: ir.DataType, to: ir.DataType) -> ir.Value:
    """Return each row of numbers (last dim) as one wider number, lowest bits first."""
    wide = cx.cast(word, ir.DataType.UINT64)
    total = None
    for index, start in enumerate(range(0, to.bitwidth, source.bitwidth)):
        part = shifted(cx, cx.op("Gather", wide, cx.const_i64(index), axis=-1), start, "LEFT")
        total = part if total is None else cx.op("BitwiseOr", total, part)
    assert total is not None
    return number_of(cx, total, to)


@lowers("nextafter", broadcasts=True)
def nextafter(cx: Lowering, x: ir.Value, y: ir.Value) -> ir.Value:
    """Return the next float after ``x`` in the direction of ``y``.

    Bit patterns are ordered like the magnitudes of the numbers, so the step is +1 or -1 in bits.
    Choices are made between bit patterns, because ONNX Runtime's Where drops the sign of -0.
    """
    assert x.dtype is not None
    kind, form = x.dtype, FORMATS[x.dtype]
    word, target = word_of(cx, x), word_of(cx, y)
    assert word.dtype is not None
    x, y = _as_float32(cx, x), _as_float32(cx, y)
    zero = cx.const_like(0, x)
    # Away from 0 if both comparisons agree.
    away_from_zero = cx.op("Equal", cx.op("Greater", y, x), cx.op("Greater", x, zero))
    twice = cx.op("Mul", cx.cast(away_from_zero, word.dtype), cx.const_like(2, word))
    stepped = cx.op("Add", word, cx.op("Sub", twice, cx.const_like(1, word)))
    sign = cx.op("BitwiseAnd", target, cx.const_like(1 << kind.bitwidth - 1, word))
    smallest = cx.op("BitwiseOr", sign, cx.const_like(1, word))
    stepped = where(cx, cx.op("Equal", x, zero), smallest, stepped)
    stepped = where(cx, cx.op("Equal", x, y), target, stepped)
    nan = cx.op("Or", cx.op("IsNaN", x), cx.op("IsNaN", y))
    quiet = cx.const_like((2 * form.special + 1) << form.mantissa - 1, word)
    return number_of(cx, where(cx, nan, quiet, stepped), kind)


def _as_float32(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return half floats as float32, for which every runtime has comparisons."""
    return x if x.dtype == ir.DataType.DOUBLE else cx.cast(x, ir.DataType.FLOAT)


@lowers("reduce_precision", broadcasts=True)
def reduce_precision(
    cx: Lowering, x: ir.Value, *, exponent_bits: int, mantissa_bits: int
) -> ir.Value:
    """Round ``x`` to fewer exponent and mantissa bits, ties to even.

    Overflow becomes infinite, and a subnormal result becomes 0.
    """
    assert x.dtype is not None
    kind, form = x.dtype, FORMATS[x.dtype]
    exponent, mantissa = min(exponent_bits, form.exponent), min(mantissa_bits, form.mantissa)
    if (exponent, mantissa) == (form.exponent, form.mantissa):
        return x
    if kind == ir.DataType.FLOAT and (exponent, mantissa) == (8, 7):
        return cx.cast(cx.cast(x, ir.DataType.BFLOAT16), kind)
    word = word_of(cx, x)
    sign_bit = cx.const_like(1 << kind.bitwidth - 1, word)
    sign = cx.op("BitwiseAnd", word, sign_bit)
    magnitude = original = cx.op("BitwiseXor", word, sign)
    infinite = cx.const_like(form.special << form.mantissa, word)
    if mantissa < form.mantissa:
        magnitude = _rounded(cx, magnitude, form.mantissa - mantissa)
    if exponent < form.exponent:
        largest = (1 << exponent - 1) - 1
        above = cx.const_like(form.bias + largest + 1 << form.mantissa, word)
        least = cx.const_like(form.bias - largest + 1 << form.mantissa, word)
        magnitude = where(cx, cx.op("Less", magnitude, least), cx.const_like(0, word), magnitude)
        magnitude = where(cx, cx.op("GreaterOrEqual", magnitude, above), infinite, magnitude)
    # Rounding would turn a NaN into infinity, or into a number.
    magnitude = where(cx, cx.op("Greater", original, infinite), original, magnitude)
    return number_of(cx, cx.op("BitwiseOr", magnitude, sign), kind)


def _rounded(cx: Lowering, word: ir.Value, dropped: int) -> ir.Value:
    """Return ``word`` with its lowest ``dropped`` bits rounded to zero, ties to even.

    A carry moves into the exponent, as rounding requires.
    """
    last = cx.op("BitwiseAnd", shifted(cx, word, dropped, "RIGHT"), cx.const_like(1, word))
    below_half = cx.const_like((1 << dropped - 1) - 1, word)
    raised = cx.op("Add", word, cx.op("Add", last, below_half))
    return shifted(cx, shifted(cx, raised, dropped, "RIGHT"), dropped, "LEFT")
