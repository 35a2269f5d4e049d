"""Shifts and rotations of unsigned integers that are held as digits."""

from __future__ import annotations

import numpy as np

from smelt.passes.precision.digits import BASE, BITS, LAST, Arithmetic, Digit, Word


def shifted_left(math: Arithmetic, x: Word, by: int) -> Word:
    """Return ``x << by``."""
    places, bits = divmod(by, BITS)
    digits = []
    for index in range(len(x)):
        source = index - places
        low = _moved(math, x[source - 1], bits - BITS) if bits and source > 0 else None
        high = _moved(math, x[source], bits) if source >= 0 else None
        digits.append(_sum(math, high, low, x[index]))
    return tuple(digits)


def shifted_right(math: Arithmetic, x: Word, by: int) -> Word:
    """Return ``x >> by``."""
    places, bits = divmod(by, BITS)
    digits = []
    for index in range(len(x)):
        source = index + places
        low = _moved(math, x[source], -bits) if source < len(x) else None
        high = _moved(math, x[source + 1], BITS - bits) if bits and source + 1 < len(x) else None
        digits.append(_sum(math, low, high, x[index]))
    return tuple(digits)


def _moved(math: Arithmetic, digit: Digit, by: int) -> Digit | None:
    """Return the bits of ``digit`` that stay within 16 bits after a move up by ``by`` (down if
    negative); None if there are none."""
    mask = digit.mask << by & LAST if by > 0 else digit.mask >> -by
    if not mask:
        return None
    if by > 0:
        low = math.remainder(digit.value, BITS - by, digit.mask)
        return Digit(math.op("Mul", low.value, 1 << by), mask)
    return Digit(math.op("Div", digit.value, 1 << -by), mask) if by else digit


def _sum(math: Arithmetic, a: Digit | None, c: Digit | None, like: Digit) -> Digit:
    """Return the sum of two parts without common bits; 0 if both are missing."""
    if a is None or c is None:
        return a or c or math.zero(like)
    return Digit(math.op("Add", a.value, c.value), a.mask | c.mask)


def shifted(math: Arithmetic, x: Word, by: Word, *, left: bool) -> Word:
    """Return ``x`` shifted by computed numbers of bits, each below the bits of ``x``.

    The bits within a digit are multiplied and divided by powers of 2 from tables. Whole digits
    move where the count is 16 or more.
    """
    places, bits = math.op("Div", by[0].value, BITS), math.op("Mod", by[0].value, BITS)
    power, rest = (
        math.op("Gather", math.array(table.astype(np.int32)), bits)
        for table in (1 << np.arange(BITS), BASE >> np.arange(BITS))
    )
    within = []
    for index, digit in enumerate(x):
        if left:
            part = math.op("Mul", math.op("Mod", digit.value, rest), power)
            other = math.op("Div", x[index - 1].value, rest) if index else None
        else:
            part = math.op("Div", digit.value, power)
            above = x[index + 1].value if index + 1 < len(x) else None
            other = None if above is None else math.op("Mul", math.op("Mod", above, power), rest)
        within.append(part if other is None else math.op("Add", part, other))
    digits = []
    for index in range(len(x)):
        total = within[index]
        for count in range(1, len(x)):
            source = index - count if left else index + count
            moved = within[source] if 0 <= source < len(x) else math.op("Mul", total, 0)
            total = math.op("Where", math.op("Equal", places, count), moved, total)
        digits.append(Digit(total))
    return tuple(digits)


def rotated(math: Arithmetic, x: Word, by: int) -> Word:
    """Return ``x`` rotated to the left."""
    bits = BITS * len(x)
    return math.bitwise("BitwiseOr", shifted_left(math, x, by), shifted_right(math, x, bits - by))
