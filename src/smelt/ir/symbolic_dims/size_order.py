"""Compares two sizes for all runs, by the noted bounds of their symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from smelt.ir.bounds import Bounds
from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic


def difference(left: Dim, right: Dim, bounds: Mapping[str, Bounds]) -> Bounds | None:
    """Return the bounds of ``left - right`` over all bounded symbols.

    None unless the difference is linear in symbols with ``bounds``.
    """
    if not all(isinstance(dim, int) or is_arithmetic(dim) for dim in (left, right)):
        return None
    expression = _expression(left) - _expression(right)
    low = high = expression
    for symbol in getattr(expression, "free_symbols", ()):
        slope = expression.diff(symbol)
        if str(symbol) not in bounds or not slope.is_Integer:
            return None
        ends = bounds[str(symbol)]
        first, last = ends if slope > 0 else ends[::-1]
        low, high = low.subs(symbol, first), high.subs(symbol, last)
    return int(low), int(high)


def _expression(dim: Dim) -> Any:
    """Return ``dim`` as a number or a SymPy expression."""
    return dim if isinstance(dim, int) else expression_of(dim)


def always(comparison: str, left: Dim, right: Dim, bounds: Mapping[str, Bounds]) -> bool | None:
    """Return the result of the ONNX ``comparison`` if the bounds decide it, else None."""
    bounds_of_difference = difference(left, right, bounds)
    if bounds_of_difference is None:
        return None
    low, high = bounds_of_difference
    answers = {
        "Less": (high < 0, low >= 0),
        "LessOrEqual": (high <= 0, low > 0),
        "Greater": (low > 0, high <= 0),
        "GreaterOrEqual": (low >= 0, high < 0),
        "Equal": (low == high == 0, low > 0 or high < 0),
    }
    yes, no = answers[comparison]
    if yes:
        return True
    return False if no else None
