"""Arithmetic of unsigned integers that are held as digits: int32 tensors of 16 bits each.

A uint32 has two digits, a uint64 four, lowest first. No step exceeds 31 bits, so all of it is exact
in int32. A digit knows which of its bits may be 1: then a rotation, whose two shifted parts share
no bit, is a sum instead of an Or.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder

BITS = 16
BASE = 1 << BITS
LAST = BASE - 1
"""The largest digit."""
INT32 = ir.DataType.INT32


@dataclass(frozen=True)
class Digit:
    """Sixteen bits of a number. ``mask`` has the bits that may be 1.

    ``number`` is the value of a constant of rank 0, and None for all others.
    """

    value: ir.Value
    mask: int = LAST
    number: int | None = None


Word: TypeAlias = tuple[Digit, ...]


def below(number: int) -> int:
    """Return the mask of all numbers up to ``number``."""
    return (1 << number.bit_length()) - 1


class Arithmetic:
    """Builds nodes that compute with digits; operands broadcast as in ONNX."""

    def __init__(self, b: Builder, constant: Callable[[np.ndarray], ir.Value]) -> None:
        """Build with ``b``; ``constant`` returns a constant that all nodes may read."""
        self.b = b
        self._constant = constant

    def op(self, op_type: str, *operands: ir.Value | int) -> ir.Value:
        """Build a node; a number becomes an int32 constant."""
        values = [self.number(each) if isinstance(each, int) else each for each in operands]
        return self.b.op(op_type, *values)

    def number(self, number: int, dtype: ir.DataType = INT32) -> ir.Value:
        """Return a constant of rank 0."""
        return self.array(np.asarray(number, dtype.numpy()))

    def array(self, array: np.ndarray) -> ir.Value:
        """Return ``array`` as a constant."""
        return self._constant(array)

    def remainder(self, x: ir.Value, bits: int, mask: int) -> Digit:
        """Return the lowest ``bits`` bits of ``x``, whose bits are in ``mask``."""
        low = (1 << bits) - 1
        return Digit(x, mask) if mask <= low else Digit(self.op("Mod", x, low + 1), mask & low)

    def zero(self, like: Digit) -> Digit:
        """Return 0 in the shape of ``like``."""
        return Digit(self.op("Mul", like.value, 0), 0)

    def constant(self, array: np.ndarray, count: int) -> Word:
        """Return the digits of a constant of unsigned integers."""
        digits = []
        for index in range(count):
            part = ((array >> array.dtype.type(BITS * index)) & array.dtype.type(LAST)).astype("i4")
            mask = int(np.bitwise_or.reduce(part, axis=None)) if part.size else 0
            digits.append(Digit(self.array(part), mask, None if part.ndim else int(part)))
        return tuple(digits)

    def split(self, x: ir.Value, bounds: tuple[int, int], count: int) -> Word:
        """Return the digits of a signed integer within ``bounds``, in two's complement.

        A negative x has the inverted digits of -1 - x, which is not negative and fits its type.
        """
        dtype = x.dtype
        assert dtype is not None
        is_signed = bounds[0] < 0
        minus_one, base = self.number(-1, dtype), self.number(BASE, dtype)
        rest, high = x, max(bounds[1], -1 - bounds[0])
        if is_signed:
            rest = self.op("Max", x, self.op("Sub", minus_one, x), self.number(0, dtype))
        negative = self.op("Less", x, self.number(0, dtype)) if is_signed else None
        digits = []
        for index in range(count):
            low = self.op("Mod", rest, base) if high > LAST else rest
            rest = self.op("Div", rest, base) if index + 1 < count else rest
            low = self.b.cast(low, INT32)
            mask = LAST if is_signed else below(min(high, LAST))
            high >>= BITS
            if negative is not None:
                low = self.op("Where", negative, self.op("Sub", LAST, low), low)
            digits.append(Digit(low, mask))
        return tuple(digits)

    def joined(self, word: Word) -> ir.Value:
        """Return the int32 with the lowest 32 bits of ``word``."""
        low, high = word[:2]
        total = high.value
        if high.mask == 0:
            return low.value
        if high.mask > LAST // 2:
            sign = self.op("Div", total, BASE // 2)
            total = self.op("Sub", total, self.op("Mul", sign, BASE))
        return self.op("Add", self.op("Mul", total, BASE), low.value)

    def ordered(self, word: Word) -> ir.Value:
        """Return the uint32 ``word`` minus 2**31, as int32: a number with the same order."""
        low, high = word
        return self.op(
            "Add", self.op("Mul", self.op("Sub", high.value, BASE // 2), BASE), low.value
        )

    def add(self, x: Word, y: Word) -> Word:
        """Return the sum, without the carry of the highest digit."""
        digits: list[Digit] = []
        carry = None
        for a, c in zip(x, y, strict=True):
            total = self.op("Add", a.value, c.value)
            high = a.mask + c.mask
            if carry is not None:
                total, high = self.op("Add", total, carry), high + 1
            digits.append(self.remainder(total, BITS, below(high)))
            is_last = len(digits) == len(x)
            carry = self.op("Div", total, BASE) if high > LAST and not is_last else None
        return tuple(digits)

    def subtract(self, x: Word, y: Word) -> Word:
        """Return the difference; each digit borrows 65536 from the next."""
        digits: list[Digit] = []
        kept: ir.Value | None = None
        for a, c in zip(x, y, strict=True):
            raised = self.op("Add", a.value, BASE if kept is None else LAST)
            total = self.op("Sub", raised, c.value)
            if kept is not None:
                total = self.op("Add", total, kept)
            digits.append(Digit(self.op("Mod", total, BASE)))
            if len(digits) < len(x):
                kept = self.op("Div", total, BASE)
        return tuple(digits)

    def multiply(self, x: Word, y: Word) -> Word:
        """Return the product, without what exceeds the highest digit."""
        parts: list[list[tuple[ir.Value, int]]] = [[] for _ in x]
        for i, a in enumerate(x):
            for j, c in enumerate(y[: len(x) - i]):
                if i + j and not a.mask * c.mask:
                    continue
                for offset, part in enumerate(self._product(a, c, is_last=i + j + 1 == len(x))):
                    parts[i + j + offset].append(part)
        digits: list[Digit] = []
        for index, column in enumerate(parts):
            if not column:
                digits.append(self.zero(digits[0]))
                continue
            total = reduce(lambda a, c: self.op("Add", a, c), (value for value, _ in column))
            high = sum(most for _, most in column)
            digits.append(self.remainder(total, BITS, below(high)))
            if high > LAST and index + 1 < len(x):
                parts[index + 1].append((self.op("Div", total, BASE), high >> BITS))
        return tuple(digits)

    def _product(self, a: Digit, c: Digit, *, is_last: bool) -> list[tuple[ir.Value, int]]:
        """Return addends of the digit below and of the digit above, each with its bound.

        The second operand is split into bytes unless the product fits into 31 bits:
        ``a * c = a * low + 256 * (a * high)``. ``is_last`` leaves out the digit above.
        """
        most = a.mask * c.mask
        if most < 1 << 31:
            total = self.op("Mul", a.value, c.value)
            low = self.remainder(total, BITS, below(most))
            parts = [(low.value, low.mask)]
            return (
                parts
                if is_last or most <= LAST
                else [*parts, (self.op("Div", total, BASE), most >> BITS)]
            )
        low_part = self.op("Mul", a.value, self.op("Mod", c.value, 256))
        high_part = self.op("Mul", a.value, self.op("Div", c.value, 256))
        moved = self.op("Mul", self.op("Mod", high_part, 256), 256)
        total = self.op("Add", low_part, moved)
        parts = [(self.op("Mod", total, BASE), LAST)]
        if is_last:
            return parts
        above = self.op("Add", self.op("Div", total, BASE), self.op("Div", high_part, 256))
        return [*parts, (above, LAST)]

    def bitwise(self, op_type: str, x: Word, y: Word) -> Word:
        """Return BitwiseAnd, BitwiseOr or BitwiseXor of two words."""
        return tuple(self._bits(op_type, a, c) for a, c in zip(x, y, strict=True))

    def _bits(self, op_type: str, a: Digit, c: Digit) -> Digit:
        """Return the operator on two digits; as a sum or a remainder where their bits allow it."""
        if a.number is not None:
            a, c = c, a
        number = c.number
        if op_type == "BitwiseAnd":
            if number == 0:
                return self.zero(a)
            if number is not None and number & (number + 1) == 0:
                return self.remainder(a.value, number.bit_length(), a.mask)
            return Digit(self.op(op_type, a.value, c.value), a.mask & c.mask)
        if a.mask & c.mask == 0:
            return Digit(self.op("Add", a.value, c.value), a.mask | c.mask)
        if op_type == "BitwiseXor" and number == LAST:
            return Digit(self.op("Sub", LAST, a.value))
        return Digit(self.op(op_type, a.value, c.value), a.mask | c.mask)

    def inverted(self, x: Word) -> Word:
        """Return the word with all bits changed."""
        return tuple(Digit(self.op("Sub", LAST, digit.value)) for digit in x)

    def less(self, x: Word, y: Word) -> ir.Value:
        """Return ``x < y``, decided by the highest digit that differs."""
        result = None
        for a, c in zip(x, y, strict=True):
            is_less = self.op("Less", a.value, c.value)
            if result is not None and not a.mask | c.mask:
                continue
            if result is not None:
                is_equal = self.op("Equal", a.value, c.value)
                is_less = self.op("Or", is_less, self.op("And", is_equal, result))
            result = is_less
        assert result is not None
        return result

    def equal(self, x: Word, y: Word) -> ir.Value:
        """Return ``x == y``."""
        each = [self.op("Equal", a.value, c.value) for a, c in zip(x, y, strict=True)]
        return reduce(lambda p, q: self.op("And", p, q), each)

    def select(self, condition: ir.Value, x: Word, y: Word) -> Word:
        """Return ``x`` where ``condition`` is true, else ``y``."""
        return tuple(
            Digit(self.op("Where", condition, a.value, c.value), a.mask | c.mask)
            for a, c in zip(x, y, strict=True)
        )

    def to_float(self, x: Word, dtype: ir.DataType) -> ir.Value | None:
        """Return ``x`` as float32 or float64, rounded once; None for more than 32 bits.

        A number below 2**31 is an int32. A larger one is the sum of two exact floats.
        """
        if any(digit.mask for digit in x[2:]):
            return None
        low, high = x[:2]
        if high.mask <= LAST // 2:
            return self.b.cast(self.joined(x), dtype)
        scaled = self.op("Mul", self.b.cast(high.value, dtype), self.number(BASE, dtype))
        return self.op("Add", scaled, self.b.cast(low.value, dtype))

    def from_float(self, x: ir.Value, count: int) -> Word:
        """Return the digits of a float of at least 0 and below 2**32; a fraction is cut off."""
        dtype = x.dtype
        assert dtype is not None
        whole = self.op("Floor", self.op("Max", x, self.number(0, dtype)))
        high = self.op("Floor", self.op("Div", whole, self.number(BASE, dtype)))
        low = self.op("Sub", whole, self.op("Mul", high, self.number(BASE, dtype)))
        digits = [Digit(self.b.cast(each, INT32)) for each in (low, high)]
        return (*digits, *(self.zero(digits[0]) for _ in range(count - 2)))
