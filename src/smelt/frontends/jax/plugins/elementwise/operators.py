"""Lower the primitives that the operator tables name as one elementwise operator.

Operators of the ``smelt`` domain are special functions, which become function bodies for any
runtime.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import LATE, Rule, register
from smelt.operators import all_operators
from smelt.operators.elementwise import ROWS, Row
from smelt.operators.formula import Elementwise


def rule_for(row: Row) -> Rule:
    """Return the lowering to the operator of ``row``.

    JAX's elementwise functions accept an ``accuracy``, which the lowering refuses.
    """

    def lower(cx: Lowering, *operands: ir.Value, accuracy: object = None) -> ir.Value:
        """Lower to the operator of the row."""
        if accuracy is not None:
            raise cx.unsupported(f"ONNX cannot promise the accuracy {accuracy}")
        return cx.op(row.name, *operands, domain=row.domain)

    return Rule(lower, frozenset({"accuracy"}), broadcasts=True)


def rows() -> Iterator[Row]:
    """Yield all operator rows that name a primitive."""
    declared = (operator.row for operator in all_operators() if isinstance(operator, Elementwise))
    yield from (row for row in (*ROWS.values(), *declared) if row.primitive)


def declared(primitive: str) -> Rule | None:
    """Return the lowering to an operator declared after this module was loaded, or None."""
    return next((rule_for(row) for row in rows() if row.primitive == primitive), None)


for _row in rows():
    register(_row.primitive, rule_for(_row))

LATE.append(declared)
