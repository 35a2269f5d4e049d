"""Evaluates dims that are expressions of symbols with known sizes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import onnx_ir as ir

from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.empty_dims import PLUS_ONE, expression_allowing_zero
from smelt.program.computed_sizes import product
from smelt.program.instruction import Dim
from smelt.program.run_sizes import Size, Undecided, ceil_div, highest, larger, lowest, smaller


def size_in(dim: Dim, sizes: Mapping[str, int | Size]) -> Dim | Size:
    """Return ``dim`` with ``sizes`` substituted; ``dim`` itself if that is unknown or negative."""
    size = number_in(dim, sizes)
    return dim if not isinstance(size, ir.SymbolicDim) and highest(size) < 0 else size


def number_in(dim: Dim, sizes: Mapping[str, int | Size]) -> Dim | Size:
    """Return ``dim`` with ``sizes`` substituted; unlike a size, it may be negative."""
    if not isinstance(dim, ir.SymbolicDim) or dim.value is None:
        return dim
    if dim.value in sizes:
        return sizes[dim.value]
    if not symbols_of(dim) <= sizes.keys():
        return dim
    try:
        value = _evaluate(*_sympy_expression(dim, sizes))
    except Undecided:
        return dim
    return value if value is not None else dim


def _sympy_expression(
    dim: ir.SymbolicDim, sizes: Mapping[str, int | Size]
) -> tuple[Any, Mapping[str, int | Size]]:
    """Return the expression of ``dim``, and the sizes of its symbols.

    SymPy assumes that each symbol is 1 or more, so a size that may be 0 is written as size + 1 - 1.
    """
    empty = [name for name in symbols_of(dim) if lowest(sizes[name]) == 0]
    sizes_plus_one = {f"{name}{PLUS_ONE}": sizes[name] + 1 for name in empty}
    return expression_allowing_zero(dim, empty), {**sizes, **sizes_plus_one}


def _evaluate(expression: Any, sizes: Mapping[str, int | Size]) -> int | Size | None:
    """Return the value of a SymPy ``expression``; None if it contains an unsupported function."""
    import sympy

    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return sizes.get(expression.name)
    is_rounded = isinstance(expression, sympy.floor | sympy.ceiling)
    quotient = expression.args[0] if is_rounded else expression
    numerator, denominator = sympy.fraction(sympy.together(quotient))
    if is_rounded or denominator != 1:
        dividend, divisor = _evaluate(numerator, sizes), _evaluate(denominator, sizes)
        if dividend is None or divisor is None:
            return None
        if isinstance(expression, sympy.ceiling):  # ``ceil_div`` takes a constant divisor
            return ceil_div(dividend, divisor) if isinstance(divisor, int) else None
        return dividend // divisor  # shape inference writes no floor where the quotient is exact
    operands = [_evaluate(part, sizes) for part in expression.args]
    known_operands = [part for part in operands if part is not None]
    if len(known_operands) < len(operands) or not known_operands:
        return None
    return _apply(sympy, expression, known_operands)


def _apply(sympy: Any, expression: Any, operands: list[int | Size]) -> int | Size | None:
    """Return the operator of ``expression`` applied to ``operands``; None if it is unsupported."""
    if expression.is_Add:
        total: int | Size = 0
        for operand in operands:
            total = total + operand
        return total
    if expression.is_Mul:
        return product(operands)
    if expression.is_Pow and isinstance(operands[1], int) and 0 <= operands[1] <= 8:
        return product([operands[0]] * operands[1])
    if isinstance(expression, sympy.Max | sympy.Min):
        return reduce(larger if isinstance(expression, sympy.Max) else smaller, operands)
    if isinstance(expression, sympy.Mod):
        return operands[0] % operands[1]
    return None
