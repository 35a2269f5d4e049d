"""Solve the dims of inputs for their symbols: a size of 6 in place of ``2*S`` makes S 3.

A dim that is one symbol gives it its size. A dim that is linear in one unknown symbol, as ``2*S``,
``S + 1`` and ``3*S + T`` with a known T, is solved for it. Others, as ``floor(S/2)``, are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.symbolic_dims.dims import is_symbolic, size_of, symbols_of

Dim = int | ir.SymbolicDim


def is_one_symbol(dim: Dim) -> bool:
    """True for a dim that is a symbol by itself, or whose text is no expression."""
    return is_symbolic(dim) and dim.value is not None and symbols_of(dim) <= {dim.value}


def solvers(dims: Iterable[Dim]) -> dict[str, ir.SymbolicDim]:
    """Return each symbol that the sizes of ``dims`` determine, with the dim from which it is
    solved.

    The order is one in which they can be solved: the other symbols of a dim come before it.
    """
    symbolic = [dim for dim in dims if is_symbolic(dim)]
    solved_by: dict[str, ir.SymbolicDim] = {}
    for dim in filter(is_one_symbol, symbolic):
        solved_by.setdefault(str(dim), dim)
    expressions = [dim for dim in symbolic if not is_one_symbol(dim)]
    before = -1
    while before < len(solved_by):
        before = len(solved_by)
        for dim in expressions:
            unknown = list(symbols_of(dim) - solved_by.keys())
            if len(unknown) == 1 and linear_in(dim, unknown[0]) is not None:
                solved_by[unknown[0]] = dim
    return solved_by


def solve(dims: Sequence[Dim], sizes: Sequence[int]) -> dict[str, int]:
    """Return the sizes of the symbols of ``dims``, which have these ``sizes``.

    Sizes are not checked: where ``2*S`` is 5, S is 2, so ``2*S`` is then 4.
    """
    size_of_text = {
        str(dim): size for dim, size in zip(reversed(dims), reversed(sizes), strict=True)
    }
    solved: dict[str, int] = {}
    for name, dim in solvers(dims).items():
        if is_one_symbol(dim):
            solved[name] = size_of_text[name]
        else:
            coefficient, remainder = _known_linear(dim, name)
            size = size_of(ir.SymbolicDim(str(remainder)), solved)
            assert isinstance(size, int)
            solved[name] = (size_of_text[str(dim)] - size) // coefficient
    return solved


def misfit_of(dims: Sequence[Dim], sizes: Sequence[int], known: Mapping[str, int]) -> str:
    """Return why ``sizes`` do not fit expressions among ``dims``; empty if they do.

    ``known`` are the sizes of symbols that ``solve`` returned.
    """
    for dim, size in zip(dims, sizes, strict=True):
        if isinstance(dim, int) or is_one_symbol(dim) or not symbols_of(dim) <= known.keys():
            continue
        names = sorted(symbols_of(dim))
        bindings = ", ".join(f"{name}={known[name]}" for name in names)
        if any(known[name] < 0 for name in names):
            return f"{dim} is {size} only where {bindings}, and no size is below 0"
        expected = size_of(dim, known)
        if expected != size:
            return f"{dim} is {expected} where {bindings}, not {size}"
    return ""


def linear_in(dim: ir.SymbolicDim, name: str) -> tuple[int, Any] | None:
    """Return ``(k, remainder)`` where ``dim`` is ``k * name + remainder`` with a whole k; None
    otherwise.
    """
    expression = expression_of(dim)
    symbol = next((symbol_ for symbol_ in expression.free_symbols if symbol_.name == name), None)
    if symbol is None:
        return None
    expression = expression.expand()
    coefficient = expression.coeff(symbol)
    remainder = expression - coefficient * symbol
    if not coefficient.is_Integer or coefficient == 0 or symbol in remainder.free_symbols:
        return None
    return int(coefficient), remainder


def _known_linear(dim: ir.SymbolicDim, name: str) -> tuple[int, Any]:
    """Return ``linear_in(dim, name)``, which must not be None: (factor of ``name``, rest)."""
    linear = linear_in(dim, name)
    assert linear is not None
    return linear
