"""Long division of unsigned integers that are held as digits."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.passes.precision.digit_shifts import shifted_left
from smelt.passes.precision.digits import BASE, BITS, Arithmetic, Digit, Word


def divide(math: Arithmetic, x: Word, y: Word) -> tuple[Word, Word]:
    """Return quotient and remainder.

    A divisor below 2**30 is one int32, and so is a remainder that is moved up by a bit.
    """
    high = y[1].mask
    if any(digit.mask for digit in y[2:]) or high >= BASE >> 2:
        return _by_bits(math, x, y)
    return _by_parts(math, x, y, (high << BITS | y[0].mask).bit_length())


def _by_parts(math: Arithmetic, x: Word, y: Word, length: int) -> tuple[Word, Word]:
    """Divide by a number of ``length`` bits, part by part from the highest.

    A part has so many bits that the remainder, moved up by them, and the part fit into 31 bits.
    """
    width = next(width for width in (16, 8, 4, 2, 1) if length + width <= 31)
    divisor = math.joined(y)
    quotient: list[Digit] = []
    rest: ir.Value | None = None
    for digit in reversed(x):
        result: ir.Value | None = None
        for part in _parts(math, digit, width):
            total = part if rest is None else math.op("Add", math.op("Mul", rest, 1 << width), part)
            found, rest = math.op("Div", total, divisor), math.op("Mod", total, divisor)
            if result is not None:
                found = math.op("Add", math.op("Mul", result, 1 << width), found)
            result = found
        assert result is not None
        quotient.insert(0, Digit(result))
    assert rest is not None
    return tuple(quotient), math.split(rest, (0, (1 << length) - 1), len(x))


def _parts(math: Arithmetic, digit: Digit, width: int) -> Sequence[ir.Value]:
    """Return the parts of ``width`` bits of ``digit``, the highest first."""
    parts = []
    for place in reversed(range(0, BITS, width)):
        moved = math.op("Div", digit.value, 1 << place) if place else digit.value
        parts.append(math.remainder(moved, width, digit.mask >> place).value)
    return parts


def _by_bits(math: Arithmetic, x: Word, y: Word) -> tuple[Word, Word]:
    """Divide bit by bit from the highest: subtract the divisor from the remainder where it fits.

    The shifted remainder may have one bit more than a word. It then exceeds the divisor, so the
    divisor is subtracted in that case, too.
    """
    quotient: list[Digit] = []
    rest = tuple(math.zero(a) for a in math.add(x, y))
    for digit in reversed(x):
        total: ir.Value | None = None
        for bit in _parts(math, digit, 1):
            is_long = math.op("GreaterOrEqual", rest[-1].value, BASE // 2)
            low, *others = shifted_left(math, rest, 1)
            raised = (Digit(math.op("Add", low.value, bit), low.mask | 1), *others)
            fits = math.op("Or", is_long, math.op("Not", math.less(raised, y)))
            rest = math.select(fits, math.subtract(raised, y), raised)
            one = math.b.cast(fits, ir.DataType.INT32)
            total = one if total is None else math.op("Add", math.op("Mul", total, 2), one)
        assert total is not None
        quotient.insert(0, Digit(total))
    return tuple(quotient), rest
