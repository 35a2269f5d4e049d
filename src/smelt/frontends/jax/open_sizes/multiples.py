"""Constraints such as ``S % 4 == 0``: JAX traces with ``4*S__over_4`` in place of ``S``.

JAX divides ``4*S`` without remainder, but cannot divide ``S`` so under that constraint. So the
specs use the product; the model's dims and all messages get the caller's name back. The name of
the quotient contains symbol and divisor, so no table of names is needed.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from smelt.errors import ErrorList, SmeltError

_QUOTIENT = re.compile(r"(\w+)__over_([1-9]\d*)")
_MULTIPLE = re.compile(r"\b(?:(\d+)\*)?(\w+?)__over_(\d+)\b")  # such as 3*S__over_4 in a message

Multiples = Mapping[str, int]
"""Symbols, each with a number that divides it."""


def is_quotient(name: str) -> bool:
    """True if ``name`` has the form of a quotient's name, which no spec may use."""
    return _QUOTIENT.fullmatch(name) is not None


def multiples_of(constraints: Iterable[ast.Compare]) -> dict[str, int]:
    """Return symbol to number, for each ``symbol % number == 0`` with a number above 1.

    Several numbers of one symbol become their least common multiple. A symbol that also occurs in
    another equality, such as ``S == 2*T``, is left out: JAX itself replaces one of the symbols.
    """
    divisors: dict[str, int] = {}
    in_other_equalities: set[str] = set()
    for constraint in constraints:
        symbol_and_divisor = divisor_of(constraint)
        if symbol_and_divisor is not None:
            symbol, divisor = symbol_and_divisor
            divisors[symbol] = math.lcm(divisors.get(symbol, 1), divisor)
        elif isinstance(constraint.ops[0], ast.Eq):
            in_other_equalities |= {
                node.id for node in ast.walk(constraint) if isinstance(node, ast.Name)
            }
    return {name: by for name, by in divisors.items() if by > 1 and name not in in_other_equalities}


def divisor_of(constraint: ast.Compare) -> tuple[str, int] | None:
    """Return ``(symbol, number)`` of ``symbol % number == 0``; None for another constraint."""
    match constraint:
        case ast.Compare(
            left=ast.BinOp(left=ast.Name(id=name), op=ast.Mod(), right=ast.Constant(value=int(by))),
            ops=[ast.Eq()],
            comparators=[ast.Constant(value=0)],
        ) if by > 0:
            return name, by
    return None


def on_quotients(constraint: ast.Compare, multiples: Multiples) -> ast.Compare:
    """Return ``constraint`` as JAX gets it, in terms of quotients.

    A bound of a symbol becomes a bound of its quotient: ``S >= 9`` becomes ``S__over_4 >= 3``. In
    other constraints, products replace the symbols.
    """
    match constraint:
        case ast.Compare(
            left=ast.Name(id=name), ops=[operator], comparators=[ast.Constant(value=int(bound))]
        ) if name in multiples and isinstance(operator, ast.GtE | ast.LtE):
            by = multiples[name]
            rounded_up = -(-bound // by)
            limit = rounded_up if isinstance(operator, ast.GtE) else bound // by
            return ast.Compare(_quotient(name, by), [operator], [ast.Constant(limit)])
    first, second = (
        with_products(side, multiples) for side in (constraint.left, *constraint.comparators)
    )
    return ast.Compare(first, constraint.ops, [second])


def with_products(tree: ast.expr, multiples: Multiples) -> ast.expr:
    """Return the size ``tree`` with products in place of the symbols in ``multiples``."""
    replaced: ast.expr = _ReplaceSymbols(multiples).visit(tree) if multiples else tree
    return replaced


def _quotient(name: str, by: int) -> ast.Name:
    """Return the name of the quotient ``name / by`` as a syntax tree."""
    return ast.Name(f"{name}__over_{by}")


class _ReplaceSymbols(ast.NodeTransformer):
    """Replaces each symbol in ``multiples`` by its product, ``S`` by ``4*S__over_4``."""

    def __init__(self, multiples: Multiples) -> None:
        self.multiples = multiples

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace the symbol ``S`` by ``4*S__over_4``, if it is in ``multiples``."""
        by = self.multiples.get(node.id)
        if by is None:
            return node
        return ast.BinOp(ast.Constant(by), ast.Mult(), _quotient(node.id, by))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Replace symbols in the arguments; the function's name stays."""
        return ast.Call(node.func, [self.visit(argument) for argument in node.args], node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Replace ``S**2`` by ``16*S__over_4**2``, and symbols in other operations as usual."""
        match node:
            case ast.BinOp(
                left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=int(power))
            ) if name in self.multiples and power > 0:
                by = self.multiples[name]
                raised = ast.BinOp(_quotient(name, by), ast.Pow(), ast.Constant(power))
                return ast.BinOp(ast.Constant(by**power), ast.Mult(), raised)
        return self.generic_visit(node)  # type: ignore[return-value]


class _RestoreSymbols(ast.NodeTransformer):
    """Undoes ``_ReplaceSymbols``: ``4*S__over_4`` becomes ``S``.

    ``S__over_4`` alone becomes ``floordiv(S, 4)``.
    """

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace ``S__over_4`` by ``floordiv(S, 4)``."""
        quotient = _QUOTIENT.fullmatch(node.id)
        if quotient is None:
            return node
        symbol, by = quotient.groups()
        return ast.Call(ast.Name("floordiv"), [ast.Name(symbol), ast.Constant(int(by))], [])

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Return a product in the caller's symbols: ``2 * S`` for ``8 * S__over_4``.

        Each quotient becomes its symbol if its divisor divides the coefficient of the product.
        """
        if not isinstance(node.op, ast.Mult | ast.Pow):
            return self.generic_visit(node)  # type: ignore[return-value]
        coefficient, factors = 1, list[ast.expr]()
        quotients = list[re.Match[str]]()
        for factor in _factors(node):
            quotient = _QUOTIENT.fullmatch(factor.id) if isinstance(factor, ast.Name) else None
            match factor:
                case ast.Constant(value=int(number)):
                    coefficient *= number
                case _ if quotient is not None:
                    quotients.append(quotient)
                case _:
                    factors.append(factor if factor is node else self.visit(factor))
        for quotient in quotients:
            name, symbol, divisor = quotient[0], quotient[1], int(quotient[2])
            if coefficient % divisor:
                factors.append(self.visit(ast.Name(name)))
            else:
                coefficient //= divisor
                factors.append(ast.Name(symbol))
        return _product([ast.Constant(coefficient), *factors] if coefficient != 1 else factors)


def _product(factors: Sequence[ast.expr]) -> ast.expr:
    """Return the product of ``factors``."""
    result, *other_factors = factors
    for factor in other_factors:
        result = ast.BinOp(result, ast.Mult(), factor)
    return result


def _factors(tree: ast.expr) -> list[ast.expr]:
    """Return the factors of a product, with powers written out."""
    match tree:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return [*_factors(left), *_factors(right)]
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))) if power > 0:
            return _factors(left) * power
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return [ast.Constant(-1), *_factors(operand)]
    return [tree]


def in_callers_symbols(tree: ast.expr) -> ast.expr:
    """Return the size ``tree``, as ``symbols.parse`` returns it, in the caller's symbols."""
    replaced: ast.expr = _RestoreSymbols().visit(tree)
    return replaced


def in_callers_names(text: str) -> str:
    """Return a message in the caller's symbols: ``3*(S//4)`` for ``3*S__over_4``."""
    return _MULTIPLE.sub(_in_callers_name, text)


def _in_callers_name(match: re.Match[str]) -> str:
    """Return a matched multiple of a quotient in the caller's symbol.

    That is ``3*(S//4)`` for ``3*S__over_4``, and ``S`` for ``4*S__over_4``.
    """
    number, name, by = match.groups()
    quotient, remainder = divmod(int(number or 1), int(by))
    if remainder:
        return f"{number}*({name}//{by})" if number else f"({name}//{by})"
    return name if quotient == 1 else f"{quotient}*{name}"


@contextmanager
def callers_names() -> Iterator[None]:
    """Let errors raised in the ``with`` block name the caller's symbols."""
    try:
        yield
    except SmeltError as error:
        _reword(error)
        raise


def _reword(error: SmeltError) -> None:
    """Write the messages of ``error``, and of all errors in it, in the caller's symbols."""
    if isinstance(error, ErrorList):
        for inner_error in error.errors:
            _reword(inner_error)
    error.what, error.why, error.fix = map(in_callers_names, (error.what, error.why, error.fix))
    error.args = (error.what, *error.args[1:])


def callers_symbol(name: str, number: int = 1) -> tuple[str, int]:
    """Return the caller's symbol for ``name``, and the number of the caller for ``number``.

    A symbol remains, with its number. ``("S__over_4", 3)`` becomes ``("S", 12)``: where the
    quotient is 3 (or a multiple of 3), S is 12 (or a multiple of 12).
    """
    quotient = _QUOTIENT.fullmatch(name)
    return (name, number) if quotient is None else (quotient[1], number * int(quotient[2]))
