"""Terms of the polynomials that represent run-time sizes, and their C text."""

from __future__ import annotations

from typing import TypeAlias

Monomial: TypeAlias = tuple[str, ...]
"""Factors in order of their names; empty for the constant."""


def constants_last(term: tuple[Monomial, int]) -> tuple[bool, bool, Monomial]:
    """Return a sort key by which constants come last, and subtracted terms after added ones."""
    monomial, factor = term
    return not monomial, factor < 0, monomial


def product_text(monomial: Monomial, factor: int) -> str:
    """Return ``factor`` times ``monomial`` as a C expression: ``dim0 * dim1 * 4``."""
    factors = list(monomial)
    if factor != 1 or not factors:
        factors.append(str(factor))
    if factor < 0 and monomial:
        return "-" + " * ".join([*monomial, *([str(-factor)] if factor != -1 else [])])
    return " * ".join(factors)
