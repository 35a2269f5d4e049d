"""Terms of the polynomials that sizes of a run are, and their text in C."""

from __future__ import annotations

from typing import TypeAlias

Monomial: TypeAlias = tuple[str, ...]
"""Factors in order of their names; none for the constant."""


def constants_last(term: tuple[Monomial, int]) -> tuple[bool, bool, Monomial]:
    """For sorting: the constant comes last, what is taken away after what is added."""
    monomial, factor = term
    return not monomial, factor < 0, monomial


def product_text(monomial: Monomial, factor: int) -> str:
    """A product as C writes it."""
    factors = list(monomial)
    if factor != 1 or not factors:
        factors.append(str(factor))
    if factor < 0 and monomial:
        return "-" + " * ".join([*monomial, *([str(-factor)] if factor != -1 else [])])
    return " * ".join(factors)
