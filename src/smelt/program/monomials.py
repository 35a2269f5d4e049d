"""Terms of the polynomials that represent run-time sizes, and their C text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

Monomial: TypeAlias = tuple[str, ...]
"""Factors in order of their names; empty for the constant."""

Bounds: TypeAlias = tuple[int, int]

Atoms: TypeAlias = Mapping[str, Bounds]
"""The bounds of the names in terms."""


def sum_text(terms: Mapping[Monomial, int]) -> str:
    """Return a sum as a C expression, constants last, and subtracted terms after added ones."""
    ordered = sorted(terms.items(), key=lambda term: (not term[0], term[1] < 0, term[0]))
    return " + ".join(_product_text(*term) for term in ordered).replace("+ -", "- ")


def _product_text(monomial: Monomial, factor: int) -> str:
    """Return ``factor`` times ``monomial`` as a C expression: ``dim0 * dim1 * 4``."""
    factors = list(monomial)
    if factor != 1 or not factors:
        factors.append(str(factor))
    if factor < 0 and monomial:
        return "-" + " * ".join([*monomial, *([str(-factor)] if factor != -1 else [])])
    return " * ".join(factors)


def product_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Return the bounds of the product of two numbers with these bounds."""
    products = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(products), max(products)


def bounds_of(terms: Mapping[Monomial, int], atoms: Atoms) -> Bounds:
    """Return the bounds of a sum that follow from the bounds of its atoms."""
    low = high = 0
    for monomial, factor in terms.items():
        interval = (factor, factor)
        for atom in monomial:
            interval = product_bounds(interval, atoms[atom])
        low, high = low + interval[0], high + interval[1]
    return low, high
