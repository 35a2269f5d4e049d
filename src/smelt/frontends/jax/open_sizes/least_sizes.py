"""A lower bound of a size expression that contains products of sizes.

JAX bounds each term alone, so it cannot exclude that ``B*T - B``, the size of
``x[:-1].reshape(-1)``, is negative. With ``b = B - 1`` and ``t = T - 1``, which are at least 0, the
size is ``b*t + t``. If no term is subtracted, the minimum is the value where b, t, ... are 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.open_sizes.symbols import Algebra, evaluate, parse

Term: TypeAlias = tuple[str, ...]
"""The factors of a product, sorted. Each factor is at least 0 unless it begins with ``OPEN``."""

Terms: TypeAlias = dict[Term, int]
"""A sum: the coefficient of each term. The empty term is the constant."""

OPEN = "?"
"""The first character of a factor without a lower bound."""

MOST_TERMS = 64
"""Sums of more terms are not bounded."""
_BOUND = re.compile(r"(\w+) >= (\d+)")


def least_size(dim: Dim, constraints: Iterable[str] = ()) -> int | None:
    """Return a lower bound of ``dim`` under ``constraints``, None if this method finds none."""
    if isinstance(dim, int):
        return dim
    matches = (_BOUND.fullmatch(text) for text in constraints)
    bounds = {match[1]: int(match[2]) for match in matches if match is not None}
    return _lower_bound(_terms(evaluate(parse(dim), _algebra_of_terms(bounds))))


def _algebra_of_terms(bounds: Mapping[str, int]) -> Algebra:
    """Return the algebra that evaluates an expression to ``Terms``: a sum of products.

    The factors are nonnegative: a symbol N with the lower bound b becomes ``b + N``, where N now
    stands for the excess over b.
    """
    return Algebra(
        symbol=lambda name: {(): bounds.get(name, 1), (name,): 1},
        number=lambda number: {(): number},
        apply=_apply_operator,
    )


def _apply_operator(operator: str, *operands: object) -> Terms:
    """Return ``a operator b`` as a sum of products.

    A quotient, remainder, maximum or minimum is not multiplied out. It becomes its lower bound plus
    one new factor, whose name is the text of the operation.
    """
    a, b = map(_terms, operands)
    match operator:
        case "+":
            return _add_multiple(a, b, 1)
        case "-":
            return _add_multiple(a, b, -1)
        case "*":
            return _multiplied(a, b)
    name = f"{operator}({sorted(a.items())}, {sorted(b.items())})"
    bound = _bound(operator, a, b)
    return {(OPEN + name,): 1} if bound is None else {(): bound, (name,): 1}


def _terms(value: object) -> Terms:
    """Return ``value`` with the type ``Terms``; the results of ``evaluate`` have type object."""
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not a sum")
    return value


def _bound(operator: str, a: Terms, b: Terms) -> int | None:
    """Return a lower bound of ``a // b``, ``a % b``, ``max(a, b)`` or ``min(a, b)``.

    None if this method finds none.
    """
    least_a, least_b = _lower_bound(a), _lower_bound(b)
    if operator == "max":
        return max((bound for bound in (least_a, least_b) if bound is not None), default=None)
    if operator == "%" and least_b is not None and least_b > 0:
        return 0
    if least_a is None or least_b is None:
        return None
    if operator == "min":
        return min(least_a, least_b)
    if least_b < 1:
        return None
    is_constant_divisor = set(b) == {()}
    if least_a >= 0 and not is_constant_divisor:
        return 0  # The divisor can be larger than the dividend.
    return least_a // least_b


def _lower_bound(terms: Terms) -> int | None:
    """Return the constant term if no other term can be negative, else None."""
    if len(terms) > MOST_TERMS:
        return None
    for term, count in terms.items():
        if term and count and (count < 0 or any(factor.startswith(OPEN) for factor in term)):
            return None
    return terms.get((), 0)


def _add_multiple(a: Terms, b: Terms, factor: int) -> Terms:
    """Return ``a + factor * b``, without terms of coefficient 0."""
    total = dict(a)
    for term, count in b.items():
        total[term] = total.get(term, 0) + factor * count
    return {term: count for term, count in total.items() if count}


def _multiplied(a: Terms, b: Terms) -> Terms:
    """Return the product of two sums: each term of one times each term of the other."""
    product: Terms = {}
    for a_term, a_count in a.items():
        for b_term, b_count in b.items():
            term = tuple(sorted(a_term + b_term))
            product[term] = product.get(term, 0) + a_count * b_count
    return product
