"""Symbolic dims, as ONNX dims and as values computed at run time.

JAX prints a dim as an expression such as ``2*B + floordiv(S, 2)``. smelt parses that text, so it
needs no private class of JAX. ONNX dims are written in the normal form of onnx_ir.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.frontends.jax.compat import Dim, is_symbolic
from smelt.frontends.jax.open_sizes.multiples import in_callers_symbols
from smelt.ir.build import Builder


class _InputDim(NamedTuple):
    """A dim of a model input, and its expression in symbols."""

    value: ir.Value
    axis: int
    expression: ast.expr


@dataclass(frozen=True)
class Algebra:
    """The meaning of a dim expression: functions for its symbols, numbers and operations."""

    symbol: Callable[[str], object]
    number: Callable[[int], object]
    apply: Callable[..., object]


def parse(dim: Dim) -> ast.expr:
    """Return the syntax tree of the expression that JAX prints for ``dim``."""
    return ast.parse(str(dim).replace("^", "**"), mode="eval").body


def evaluate(tree: ast.expr, meaning: Algebra) -> object:
    """Return the value of an expression, bottom-up.

    ``meaning.apply`` gets one of ``+ - * // % max min`` and the operands. Raises Unsupported E103
    for any other expression.
    """
    match tree:
        case ast.Constant(value=int(number)):
            return meaning.number(number)
        case ast.Name(id=name):
            return meaning.symbol(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return meaning.apply("*", meaning.number(-1), evaluate(operand, meaning))
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(power))):
            base = evaluate(left, meaning)
            return reduce(lambda a, b: meaning.apply("*", a, b), [base] * power)
        case ast.BinOp(left=left, op=operator, right=right):
            operands = evaluate(left, meaning), evaluate(right, meaning)
            return meaning.apply(_OPERATORS[type(operator)], *operands)
        case ast.Call(func=ast.Name(id=name), args=args):
            return meaning.apply(_CALLS[name], *(evaluate(arg, meaning) for arg in args))
    raise Unsupported(
        "E103",
        f"smelt cannot read the dim expression {ast.unparse(tree)!r}",
        why="sizes are sums, differences and products, floordiv, mod, max and min of symbols",
        fix="write the size with these operations, or use a new symbol for it",
    )


_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_CALLS = {"floordiv": "//", "mod": "%", "max": "max", "min": "min"}

_SPELLING = {
    "+": "({0} + {1})",
    "-": "({0} - {1})",
    "*": "({0}*{1})",
    "//": "floor({0}/{1})",
    "%": "Mod({0}, {1})",
    "max": "Max({0}, {1})",
    "min": "Min({0}, {1})",
}
_TEXT = Algebra(str, str, lambda op, a, b: _SPELLING[op].format(a, b))


def symbols_in(dim: Dim) -> list[str]:
    """Return the symbols of ``dim``, sorted."""
    if not is_symbolic(dim):
        return []
    return _symbols(parse(dim))


def _symbols(tree: ast.expr) -> list[str]:
    """Return the names in ``tree`` except function names, sorted."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return sorted(names.difference(_CALLS))


class Symbols:
    """The symbolic dims of one trace.

    Run-time values are int64 vectors of one element. ``builder`` computes them in the main graph at
    first use, so every subgraph may read them.
    """

    def __init__(self, builder: Builder) -> None:
        """Begin without inputs; ``bind`` adds them."""
        self._builder = builder
        self._sources: dict[str, list[_InputDim]] = {}  # the input dims that contain each symbol
        self._dims: dict[str, ir.SymbolicDim] = {}
        self._shapes: dict[tuple[int | str, ...], ir.Shape] = {}
        self._texts: dict[int, tuple[Dim, str]] = {}
        self._values: dict[str, ir.Value] = {}
        self._nonnegative: set[ir.Value] = set()  # run-time values known to be at least 0

    def dim(self, dim: Dim) -> int | ir.SymbolicDim:
        """Return ``dim`` as an ONNX dim."""
        if type(dim) is int or not is_symbolic(dim):
            return int(dim)
        text = self._text(dim)
        cached = self._dims.get(text)
        if cached is None:
            # Adding 0 makes onnx_ir print its normal form, which its inference prints too.
            cached = ir.SymbolicDim(str(evaluate(in_callers_symbols(parse(dim)), _TEXT))) + 0
            self._dims[text] = cached
        return cached

    def shape(self, dims: Sequence[Dim]) -> ir.Shape:
        """Return ``dims`` as a frozen ONNX shape; equal shapes are one object."""
        key = tuple(dim if type(dim) is int else self._text(dim) for dim in dims)
        cached = self._shapes.get(key)
        if cached is None:
            cached = ir.Shape([self.dim(dim) for dim in dims], frozen=True)
            self._shapes[key] = cached
        return cached

    def _text(self, dim: Dim) -> str:
        """Return ``str(dim)``, cached by object because JAX prints slowly."""
        cached = self._texts.get(id(dim))
        if cached is None:
            cached = self._texts[id(dim)] = dim, str(dim)
        return cached[1]

    def bind(self, value: ir.Value, dims: Sequence[Dim]) -> None:
        """Record that the graph input ``value`` has the sizes ``dims``.

        The model computes symbols from recorded sizes.
        """
        for axis, dim in enumerate(dims):
            for name in symbols_in(dim):
                self._sources.setdefault(name, []).append(_InputDim(value, axis, parse(dim)))

    def _solved(self) -> dict[str, _InputDim]:
        """Return, for each symbol that inputs determine, the dim to compute it from.

        A dim with several symbols determines one of them once all others are known.
        """
        solved: dict[str, _InputDim] = {}
        for name, sources in self._sources.items():
            bare_dims = [source for source in sources if isinstance(source.expression, ast.Name)]
            if bare_dims:
                solved[name] = bare_dims[0]
        count = -1
        while count < len(solved):  # until a round solves no further symbol
            count = len(solved)
            for name, sources in self._sources.items():
                if name in solved:
                    continue
                for source in sources:
                    other_symbols = set(_symbols(source.expression)) - {name}
                    if other_symbols <= solved.keys() and _is_linear(source.expression, name):
                        solved[name] = source
                        break
        return solved

    def value(self, dim: Dim) -> ir.Value:
        """Return ``dim`` at run time, an int64 vector of one element."""
        text = str(dim)
        cached = self._values.get(text)
        if cached is None:
            value = evaluate(parse(dim), Algebra(self.symbol, self._number, self._apply))
            assert isinstance(value, ir.Value)
            cached = self._values[text] = value
        return cached

    def _number(self, number: int) -> ir.Value:
        """Return a constant int64 vector of one element."""
        key = str(number)
        if key not in self._values:
            self._values[key] = self._builder.const_i64([number])
            if number >= 0:
                self._nonnegative.add(self._values[key])
        return self._values[key]

    def _apply(self, operation: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return ``a operation b`` at run time, with floor division."""
        build = self._builder.op
        nonnegative = [operand in self._nonnegative for operand in (a, b)]
        if operation == "//" and not all(nonnegative):
            # ONNX Div truncates; a - mod(a, b) is a multiple of b, so truncation is floor.
            return build("Div", build("Sub", a, build("Mod", a, b)), b)
        names = {"+": "Add", "-": "Sub", "*": "Mul", "%": "Mod", "max": "Max", "min": "Min"}
        result = build("Div" if operation == "//" else names[operation], a, b)
        if operation == "max":
            is_nonnegative = any(nonnegative)
        else:
            is_nonnegative = operation != "-" and all(nonnegative)
        if is_nonnegative:
            self._nonnegative.add(result)
        return result

    def symbol(self, name: str) -> ir.Value:
        """Return the symbol ``name`` at run time, an int64 vector of one element."""
        cached = self._values.get(name)
        if cached is None:
            cached = self._values[name] = self._solve(name)
            self._nonnegative.add(cached)
        return cached

    def _solve(self, name: str) -> ir.Value:
        """Return the value of ``name``: ``(size of an input dim - other terms) / coefficient``.

        Raises Unsupported E103 if no input determines it.
        """
        if name not in self._sources:
            raise _unsolvable(name, "no dim of an input contains it")
        source, axis, tree = self._solved().get(name, self._sources[name][0])
        size = self._builder.op("Shape", source, start=axis, end=axis + 1)
        coefficient, other_terms = _linear(tree, name)
        for sign, term in other_terms:
            if not self._solved().keys() >= {*_symbols(term), name}:
                raise _unsolvable(name, f"{ast.unparse(tree)} contains another unknown size")
            term_value = evaluate(term, Algebra(self.symbol, self._number, self._apply))
            size = self._builder.op("Sub" if sign > 0 else "Add", size, _as_value(term_value))
        if coefficient != 1:
            size = self._builder.op("Div", size, self._number(coefficient))
        return size


def _as_value(result: object) -> ir.Value:
    """Return ``result`` with the type Value; the results of ``evaluate`` have type object."""
    assert isinstance(result, ir.Value)
    return result


def _linear(tree: ast.expr, name: str) -> tuple[int, list[tuple[int, ast.expr]]]:
    """Return ``tree`` as a coefficient of ``name``, and signed terms without ``name``.

    Raises Unsupported E103 if ``tree`` is not linear in ``name``.
    """
    coefficient, other_terms = 0, []
    for sign, term in _terms(tree, 1):
        if not any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(term)):
            other_terms.append((sign, term))
            continue
        match term:
            case ast.Name():
                coefficient += sign
            case ast.BinOp(left=ast.Constant(value=int(k)), op=ast.Mult(), right=ast.Name()):
                coefficient += sign * k
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name()):
                coefficient -= sign
            case _:
                raise _unsolvable(name, f"{ast.unparse(tree)} is not linear in it")
    if coefficient == 0:
        raise _unsolvable(name, f"{ast.unparse(tree)} does not depend on it")
    return coefficient, other_terms


def _is_linear(tree: ast.expr, name: str) -> bool:
    """True if ``tree`` is linear in ``name``, so that an input's dim can be solved for it."""
    try:
        return bool(_linear(tree, name))
    except Unsupported:
        return False


def _terms(tree: ast.expr, sign: int) -> list[tuple[int, ast.expr]]:
    """Return the terms of a sum with their signs."""
    match tree:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _terms(left, sign) + _terms(right, sign)
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _terms(left, sign) + _terms(right, -sign)
    return [(sign, tree)]


def _unsolvable(name: str, why: str) -> Unsupported:
    """Return Unsupported E103 for the symbol ``name``."""
    return Unsupported(
        "E103",
        f"the size {name!r} cannot be computed from the inputs",
        why=why,
        fix=f"give some input a dim that is exactly {name!r}",
    )
