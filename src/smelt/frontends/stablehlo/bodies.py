"""Recognize the small bodies of reductions and scatters."""

from __future__ import annotations

from typing import Any


def operators_of(region: Any) -> list[str]:
    """Return the names of the operators in a body of one block; the last is its return."""
    return [inner.operation.name for inner in region.blocks[0].operations]


def only_operator(region: Any) -> str:
    """Return the operator of a body that applies one operator to its two arguments.

    The body belongs to a reduction or a scatter. ``stablehlo.return`` stands for a body that
    returns its second argument, as that of a scatter that overwrites. Empty for other bodies.
    """
    block = region.blocks[0]
    operations = list(block.operations)
    first, second = block.arguments if len(block.arguments) == 2 else (None, None)
    if len(operations) == 1:
        return "stablehlo.return" if _reads_exactly(operations[0], [second]) else ""
    if len(operations) != 2 or not _reads_exactly(
        operations[1], [operations[0].operation.results[0]]
    ):
        return ""
    commutes = operations[0].operation.name != "stablehlo.subtract"
    in_order = _reads_exactly(operations[0], [first, second])
    if in_order or (commutes and _reads_exactly(operations[0], [second, first])):
        return str(operations[0].operation.name)
    return ""


def _reads_exactly(view: Any, values: list[Any]) -> bool:
    """True if the operands of the operation are exactly ``values``."""
    operands = list(view.operation.operands)
    return len(operands) == len(values) and all(
        a == b for a, b in zip(operands, values, strict=True)
    )
