"""Counts over symbolic dims: sums of products, such as ``2*B*S + 3*B``.

A dim that is an expression stays one factor. This is enough for sums and products, and a hundred
times as fast as a computer algebra system, which matters for large models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod

import onnx_ir as ir

from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.dims import symbols_of

Product = tuple[str, ...]
"""The sorted symbols of a product."""


class Polynomial:
    """A sum of products of symbols with integer coefficients; immutable."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Product, int]) -> None:
        self.terms = terms

    @classmethod
    def of(cls, dims: Iterable[Dim]) -> Polynomial:
        """Return the product of ``dims``; 1 for none. An unknown dim is the symbol ``?``."""
        number = 1
        symbols: list[str] = []
        for dim in dims:
            if isinstance(dim, int):
                number *= dim
            else:
                times, factors = _factors(dim.value or "?")
                number *= times
                symbols += factors
        return cls({tuple(sorted(symbols)): number} if number else {})

    @classmethod
    def number(cls, value: int) -> Polynomial:
        """Return ``value`` as a constant polynomial."""
        return cls({(): value} if value else {})

    @property
    def value(self) -> int | None:
        """The number that the polynomial equals; None if it depends on symbols."""
        if not self.terms:
            return 0
        return self.terms[()] if self.terms.keys() == {()} else None

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the polynomial: names of dims, or expressions in parentheses."""
        return frozenset(name for product in self.terms for name in product)

    @property
    def names(self) -> frozenset[str]:
        """The names of all dims in the polynomial, also those inside of expressions."""
        dims_symbols = (
            symbols_of(ir.SymbolicDim(symbol)) for symbol in self.symbols if symbol != "?"
        )
        return frozenset().union(*dims_symbols)

    def __add__(self, other: Polynomial) -> Polynomial:
        """Return the sum."""
        if not self.terms or not other.terms:
            return other if not self.terms else self
        terms = dict(self.terms)
        for product, number in other.terms.items():
            terms[product] = terms.get(product, 0) + number
        return Polynomial(terms)

    def __mul__(self, other: Polynomial | int) -> Polynomial:
        """Return the product, term by term."""
        if other == 1 or not self.terms:
            return self
        if isinstance(other, int):
            return Polynomial({p: n * other for p, n in self.terms.items()} if other else {})
        terms: dict[Product, int] = {}
        for left, left_count in self.terms.items():
            for right, right_count in other.terms.items():
                product = tuple(sorted((*left, *right)))
                terms[product] = terms.get(product, 0) + left_count * right_count
        return Polynomial(terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __repr__(self) -> str:
        return f"Polynomial({self})"

    def texts(self) -> list[str]:
        """Return its terms as text, most factors first; empty for 0."""
        ordered = sorted(self.terms.items(), key=lambda term: (-len(term[0]), term[0]))
        return [_term(product, number) for product, number in ordered]

    def __str__(self) -> str:
        return " + ".join(self.texts()) or "0"

    def to_json(self) -> int | str:
        """Return the number, or the formula as text."""
        return str(self) if self.value is None else self.value


ZERO, ONCE = Polynomial({}), Polynomial.number(1)


def total(items: Iterable[Polynomial]) -> Polynomial:
    """Return the sum of ``items``, in time linear in their terms."""
    terms: dict[Product, int] = {}
    for item in items:
        for product, number in item.terms.items():
            terms[product] = terms.get(product, 0) + number
    return Polynomial(terms)


def elements(value: ir.Value | None) -> Polynomial | None:
    """Return the number of elements of ``value``; None if its rank is unknown."""
    if value is None or value.shape is None:
        return None
    return Polynomial.of(value.shape.dims)


@lru_cache(maxsize=1024)
def _factors(text: str) -> tuple[int, Product]:
    """Return the dim ``text`` as a number and symbols to multiply.

    An expression other than a product is one factor, in parentheses.
    """
    parts = [part.strip() for part in text.split("*")]
    if not all(part.isidentifier() or part.isdecimal() for part in parts):
        return 1, (text if text == "?" else f"({text})",)
    number = prod(int(part) for part in parts if part.isdecimal())
    return number, tuple(part for part in parts if not part.isdecimal())


def _term(product: Product, number: int) -> str:
    """Return one term as text, ``2*B*S^2``."""
    powers = {name: product.count(name) for name in product}
    factors = [name if count == 1 else f"{name}^{count}" for name, count in powers.items()]
    return "*".join([*([str(number)] if number != 1 or not factors else []), *factors])
