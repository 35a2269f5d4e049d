"""The elementwise operators of ONNX: one row each, and all other tables derive from the rows.

Each family has a file of rows. Passes use the sets below. Lowering, the kernels of ``host`` and of
C, the JAX frontend, folding and the documentation read the rows themselves. Operators of other
domains also have rows, if ``operators.formula.elementwise`` declares them.
"""

from __future__ import annotations

from collections.abc import Mapping

from smelt.operators.elementwise import activation, arithmetic, functions, logic
from smelt.operators.elementwise.row import Formula, Rounding, Row

__all__ = [
    "BROADCASTING",
    "COMMUTATIVE",
    "ELEMENTWISE",
    "FIRST_ONLY",
    "ROWS",
    "UNARY",
    "WITHIN_FORMULAS",
    "Formula",
    "Rounding",
    "Row",
    "row_of",
]

_FAMILIES = (activation, arithmetic, functions, logic)

ROWS: Mapping[str, Row] = {row.name: row for family in _FAMILIES for row in family.ROWS}
"""By name, in ONNX's own domain."""

WITHIN_FORMULAS = {row.name: row for row in functions.WITHIN_FORMULAS}
"""By name: functions that formulas may call besides operators of ONNX."""


def row_of(name: str) -> Row | None:
    """Return the row of the operator that a formula calls ``name``, or None."""
    return ROWS.get(name) or WITHIN_FORMULAS.get(name)


ELEMENTWISE = frozenset(ROWS)
"""Operators whose result at an index depends on the operands at that index only."""

UNARY = frozenset(name for name, row in ROWS.items() if row.operands == 1) - {"Clip"}
"""Operators of one tensor; other inputs, if any, are scalars."""

FIRST_ONLY = UNARY | {"Clip", "Dropout", "CastLike"}
"""Operators whose first operand alone has the shape of the result."""

BROADCASTING = frozenset(name for name, row in ROWS.items() if row.operands != 1) - {"PRelu"}
"""Operators that broadcast all their tensors against each other."""
COMMUTATIVE = frozenset(name for name, row in ROWS.items() if row.commutative)
