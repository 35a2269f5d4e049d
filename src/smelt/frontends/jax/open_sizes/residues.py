"""Decide by remainders whether a size expression is zero.

JAX decides by bounds only. It does not see that ``N % 2`` is 0 under ``N % 8 == 0``, nor that
``2*N`` is never 3.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterable, Mapping

LIMIT = 4096
"""The largest set of remainders or values that is enumerated."""

Remainders = Mapping[str, tuple[int, int]]
"""For each symbol, a modulus and its remainder according to the constraints."""

_OPERATIONS: Mapping[str | type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    "max": max,
    "min": min,
}


def is_zero(tree: ast.expr, remainders: Remainders) -> bool | None:
    """Return True if ``tree`` is always 0, False if it never is, None if this method cannot decide.

    ``tree`` is an expression as ``symbols.parse`` returns it. It is never 0 if 0 is not among its
    values, or if its remainder modulo some number in the expression is never 0.
    """
    values = _values(tree, remainders)
    if values is not None and len(values) <= 1:
        return values == {0}
    if values is not None and 0 not in values:
        return False
    numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    moduli = {abs(int(number)) for number in numbers if isinstance(number, int)}
    moduli |= {modulus for modulus, _ in remainders.values()}
    if any(0 not in _residues(tree, k, remainders) for k in moduli if 1 < k <= LIMIT):
        return False
    return None


def known_remainders(constraints: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return the remainders that ``constraints`` state, as JAX prints them: ``mod(S, 8) == 0``."""
    remainders: dict[str, tuple[int, int]] = {}
    for text in constraints:
        left, equals, right = text.partition("==")
        match ast.parse(left.strip().replace("^", "**"), mode="eval").body if equals else None:
            case ast.Call(
                func=ast.Name(id="mod"),
                args=[ast.Name(id=name), ast.Constant(value=int(modulus))],
            ) if right.strip().isdecimal() and name not in remainders:
                remainders[name] = modulus, int(right)
    return remainders


def _values(tree: ast.expr, remainders: Remainders) -> set[int] | None:
    """Return a superset of the values of ``tree``; None if it has too many."""
    match tree:
        case ast.Constant(value=int(number)):
            return {number}
        case ast.Call(func=ast.Name(id="mod"), args=[inner, ast.Constant(value=int(modulus))]):
            return _residues(inner, modulus, remainders) if 0 < modulus <= LIMIT else None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _combine_pairs(
                _OPERATIONS[type(op)], _values(left, remainders), _values(right, remainders)
            )
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _combine_pairs(int.__mul__, {-1}, _values(operand, remainders))
        case ast.Call(func=ast.Name(id=("max" | "min") as name), args=[left, right]):
            return _combine_pairs(
                _OPERATIONS[name], _values(left, remainders), _values(right, remainders)
            )
    return None


def _combine_pairs(
    combine: Callable[[int, int], int], a: set[int] | None, b: set[int] | None
) -> set[int] | None:
    """Return ``combine(x, y)`` for all x in ``a`` and y in ``b``.

    None if a set is unknown or there are more than ``LIMIT`` pairs.
    """
    if a is None or b is None or len(a) * len(b) > LIMIT:
        return None
    return {combine(x, y) for x, y in itertools.product(a, b)}


def _residues(tree: ast.expr, k: int, remainders: Remainders) -> set[int]:
    """Return a superset of the remainders of ``tree`` modulo ``k``."""
    all_remainders = set(range(k))
    match tree:
        case ast.Constant(value=int(number)):
            return {number % k}
        case ast.Name(id=name):
            # N = remainder + i * modulus; modulo k, these numbers differ by gcd(modulus, k).
            modulus, remainder = remainders.get(name, (1, 0))
            step = math.gcd(modulus, k)
            return set(range(remainder % step, k, step))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {-value % k for value in _residues(operand, k, remainders)}
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            operands = _residues(left, k, remainders), _residues(right, k, remainders)
            results = _combine_pairs(_OPERATIONS[type(op)], *operands)
            return all_remainders if results is None else {value % k for value in results}
        case ast.Call(func=ast.Name(id="mod"), args=[inner, ast.Constant(value=int(modulus))]):
            if not 0 < modulus <= LIMIT:
                return all_remainders
            if modulus % k == 0:  # (x mod modulus) mod k is then x mod k.
                return _residues(inner, k, remainders)
            return {value % k for value in _residues(inner, modulus, remainders)}
        case ast.Call(func=ast.Name(id="floordiv"), args=[inner, ast.Constant(value=int(by))]):
            if not 0 < by * k <= LIMIT:
                return all_remainders
            # (x // by) mod k depends only on x mod (by * k).
            return {value // by for value in _residues(inner, by * k, remainders)}
        case ast.Call(func=ast.Name(id=("max" | "min")), args=[left, right]):
            return _residues(left, k, remainders) | _residues(right, k, remainders)
    return all_remainders
