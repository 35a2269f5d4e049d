"""Lower shifts, high products and bit counts of integers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

INT64, UINT32, UINT64 = ir.DataType.INT64, ir.DataType.UINT32, ir.DataType.UINT64


def unsigned_of(dtype: ir.DataType) -> ir.DataType:
    """Return the unsigned type of the width of ``dtype``; a Cast to it keeps an integer's bits."""
    return ir.DataType.from_numpy(np.dtype(f"u{dtype.itemsize:.0f}"))


def widened(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return integers' bits zero-extended to uint32, or to uint64 for 64-bit types.

    ONNX shifts unsigned numbers only, and runtimes lack kernels for 16 bits.
    """
    assert x.dtype is not None
    word = UINT64 if x.dtype.bitwidth == 64 else UINT32
    return cx.cast(cx.cast(x, unsigned_of(x.dtype)), word)


def shifted(cx: Lowering, word: ir.Value, by: int, direction: str) -> ir.Value:
    """Return ``word`` shifted by ``by`` bits, fewer than its width."""
    return cx.op("BitShift", word, cx.const_like(by, word), direction=direction)


@lowers("shift_left", "shift_right_logical", broadcasts=True)
def shift_logical(cx: Lowering, x: ir.Value, by: ir.Value) -> ir.Value:
    """Lower the shifts that fill with zeros."""
    is_left = cx.equation.primitive.name == "shift_left"
    return _shift(cx, x, by, "LEFT" if is_left else "RIGHT")


@lowers("shift_right_arithmetic", broadcasts=True)
def shift_right_arithmetic(cx: Lowering, x: ir.Value, by: ir.Value) -> ir.Value:
    """Shift right with sign extension: negative numbers are complemented before and after."""
    assert x.dtype is not None
    signed = cx.cast(x, np.dtype(f"i{x.dtype.itemsize:.0f}"))
    assert signed.dtype is not None
    mask = cx.op("Neg", cx.cast(cx.op("Less", signed, cx.const_like(0, signed)), signed.dtype))
    shifted_bits = _shift(cx, cx.op("BitwiseXor", signed, mask), by, "RIGHT")
    return cx.cast(cx.op("BitwiseXor", shifted_bits, mask), x.dtype)


def _shift(cx: Lowering, x: ir.Value, by: ir.Value, direction: str) -> ir.Value:
    """Shift with zero fill; a shift by the width or more gives 0, but is undefined in ONNX."""
    assert x.dtype is not None
    amounts, bits = cx.known(by), widened(cx, x)
    word = UINT32 if bits.dtype == UINT32 else UINT64
    if amounts is not None and ((amounts >= 0) & (amounts < word.bitwidth)).all():
        amount = cx.constant(amounts.astype(word.numpy()))
        return cx.cast(cx.op("BitShift", bits, amount, direction=direction), x.dtype)
    count = widened(cx, by)
    inside = cx.cast(cx.op("Less", count, cx.const_like(word.bitwidth, count)), word)
    safe = cx.op("BitwiseAnd", count, cx.const_like(word.bitwidth - 1, count))
    shifted_bits = cx.op("BitShift", bits, safe, direction=direction)
    return cx.cast(cx.op("Mul", shifted_bits, inside), x.dtype)


@lowers("mulhi", broadcasts=True)
def mulhi(cx: Lowering, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the upper half of the product, computed in 64 bits."""
    assert a.dtype is not None
    if a.dtype.bitwidth == 64:
        raise cx.unsupported("ONNX has no integers that hold a product of 64-bit numbers")
    wide = (cx.cast(x, INT64 if a.dtype.is_signed() else UINT64) for x in (a, b))
    product = cx.cast(cx.op("Mul", *wide), UINT64)
    return cx.cast(shifted(cx, product, int(a.dtype.bitwidth), "RIGHT"), a.dtype)


@lowers("population_count", broadcasts=True)
def population_count(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return the number of set bits, by parallel sums in fields of 2, 4 and 8 bits.

    A product with 0x0101... adds all bytes into the highest (Warren, Hacker's Delight, 5-1).
    """
    assert x.dtype is not None
    bits = widened(cx, x)
    size = 8 if bits.dtype == UINT64 else 4

    def bytes_of(pattern: int) -> ir.Value:
        """Return the constant whose bytes all are ``pattern``."""
        return cx.const_like(int.from_bytes(bytes([pattern]) * size, "big"), bits)

    def masked(value: ir.Value, pattern: int) -> ir.Value:
        """Return ``value`` with only the bits of ``pattern`` kept in each byte."""
        return cx.op("BitwiseAnd", value, bytes_of(pattern))

    bits = cx.op("Sub", bits, masked(shifted(cx, bits, 1, "RIGHT"), 0x55))
    bits = cx.op("Add", masked(bits, 0x33), masked(shifted(cx, bits, 2, "RIGHT"), 0x33))
    bits = masked(cx.op("Add", bits, shifted(cx, bits, 4, "RIGHT")), 0x0F)
    total = cx.op("Mul", bits, bytes_of(0x01))
    return cx.cast(shifted(cx, total, 8 * size - 8, "RIGHT"), x.dtype)


@lowers("clz", broadcasts=True)
def clz(cx: Lowering, x: ir.Value) -> ir.Value:
    """Count the leading zero bits: the width minus the bit length."""
    assert x.dtype is not None
    bits = widened(cx, x)
    if bits.dtype == UINT32:
        length = _bit_length(cx, bits)
    else:
        high = shifted(cx, bits, 32, "RIGHT")
        low = cx.op("BitwiseAnd", bits, cx.const_like((1 << 32) - 1, bits))
        above = cx.op("Add", _bit_length(cx, high), cx.const_i64(32))
        length = cx.op(
            "Where", cx.op("Equal", high, cx.const_like(0, high)), _bit_length(cx, low), above
        )
    return cx.cast(cx.op("Sub", cx.const_i64(x.dtype.bitwidth), length), x.dtype)


def _bit_length(cx: Lowering, x: ir.Value) -> ir.Value:
    """Return the bit length of integers below 2**32: floor(log2(x + 0.5)) + 1.

    With 0.5 added, no logarithm is close enough to an integer to round to it.
    """
    wide = cx.cast(x, ir.DataType.DOUBLE)
    log = cx.op("Log", cx.op("Add", wide, cx.const_like(0.5, wide)))
    power = cx.op("Floor", cx.op("Mul", log, cx.const_like(1 / np.log(2), wide)))
    return cx.cast(cx.op("Add", power, cx.const_like(1, wide)), INT64)
