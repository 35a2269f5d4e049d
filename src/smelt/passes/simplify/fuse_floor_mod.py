"""Turn a truncated remainder with a sign correction into a floored ``Mod``.

    before   r = Mod(x, n, fmod = 1); Where(r < 0 and r != 0, r + n, r) ─> y
    after    x ─> Mod(·, n) ─> y

JAX writes ``x % n`` in this way.

Needs    (1) signed integers, and a constant n with elements above 0.
Keeps    (1) floats, for which Mod has no floored form; (2) a remainder with other readers; (3) a
         divisor that may be negative, or is computed.
"""

from __future__ import annotations

import numpy as np

from smelt.ir.build import Builder
from smelt.ir.pattern import Pattern, const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass

_zero = const(0, ulp=0)
_r = op("Mod", var("x"), const(name="n"), name="r", fmod=1)  # keeps 2


def _less_than_zero(value: Pattern) -> Pattern:
    """Match ``value < 0`` or ``0 > value``."""
    return one_of(op("Less", value, _zero), op("Greater", _zero, value))


_negative = _less_than_zero(_r)
_not_zero = op("Not", op("Equal", _r, _zero, commutative=True))
_corrected = op("Add", _r, const(name="added"), commutative=True)


@rule(
    one_of(
        op("Where", _negative, _corrected, _r),
        op("Where", op("And", _negative, _not_zero, commutative=True), _corrected, _r),
    )
)
def floor_mod(m: Match, b: Builder) -> Replacement:
    """Replace the remainder and its correction by Mod."""
    dtype, n, added = m["x"].dtype, m.array("n"), m.array("added")
    if dtype is None or not dtype.is_integer() or not dtype.is_signed():  # keeps 1
        return Miss("x is not known to be a signed integer")
    if n is None:
        return Miss("the divisor is not constant")
    if not bool(np.all(n > 0)):  # needs 1, keeps 3
        return Miss("the divisor is not above 0")
    if added is None or not np.array_equal(n, added):
        return Miss("the number added to a negative remainder is not the divisor")
    return b.op("Mod", m["x"], m["n"])


fuse_floor_mod = rule_pass("fuse_floor_mod", __doc__, [floor_mod], exactness=EXACT)
