"""Redundant bounds in sizes: Min and Max that have no effect in any run, even with empty inputs.

``Min(N, N + Min(1, N))`` is N for every N >= 0. SymPy proves it for N >= 1, so each case in which
some of the sizes are 0 is checked separately.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

import onnx_ir as ir

from smelt.ir.onnx_ir_private import expression_of
from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.dim_texts import is_plain
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.ir.symbolic_dims.empty_dims import (
    any_may_be_zero,
    expression_of_positive,
    may_be_zero,
    with_zeros,
)

_EFFECTIVE_BOUND = re.compile(
    r"Max\(0, ([A-Za-z_]\w*) - [1-9]\d*\)|Min\([1-9]\d*, ([A-Za-z_]\w*)\)"
)
"""A single bound of one size, which has an effect in some runs if the size may be 0."""

MOST = 3
"""Maximum number of sizes that may be 0 in one dim; each doubles the number of cases."""


def without_redundant_bounds(dim: Dim) -> Dim:
    """Return ``dim`` without redundant bounds, or ``dim`` itself if none is redundant."""
    if (
        isinstance(dim, int)
        or not any_may_be_zero()
        or not _is_bounded(dim)
        or _is_effective_bound(dim)
    ):
        return dim  # SymPy takes milliseconds to read a bound
    read = str(expression_of(dim))
    names = tuple(sorted(filter(may_be_zero, symbols_of(dim))))
    simple = _simplified_text(read, names) or read
    if _bounds(simple) == _bounds(str(dim)):
        return dim
    return int(simple) if simple.isdecimal() else ir.SymbolicDim(simple)


def is_one_unless_empty(dim: Dim, parts: Sequence[Dim]) -> bool:
    """True if ``dim``, one of ``parts``, is 1 in every run in which the sum of ``parts`` is not
    0."""
    if isinstance(dim, int) or not _is_bounded(dim):
        return dim == 1
    empty = [*filter(may_be_zero, symbols_of(dim))]
    if (
        len(empty) > MOST
        or expression_of_positive(str(dim)) != 1
        or not all(map(_is_plain_dim, parts))
    ):
        return False
    return all(
        with_zeros(str(dim), zeros) == 1 or not sum(with_zeros(str(part), zeros) for part in parts)
        for zeros in _cases(empty)
    )


def _is_plain_dim(dim: Dim) -> bool:
    """True for a number, and for a dim whose text is plain arithmetic."""
    return isinstance(dim, int) or (dim.value is not None and is_plain(dim.value))


def _is_bounded(dim: ir.SymbolicDim) -> bool:
    """True if the text of ``dim`` is plain arithmetic with a Min or Max."""
    text = dim.value or ""
    return ("Min(" in text or "Max(" in text) and is_plain(text)


def _is_effective_bound(dim: ir.SymbolicDim) -> bool:
    """True if ``dim`` is a single bound that has an effect in some runs."""
    match = _EFFECTIVE_BOUND.fullmatch(dim.value or "")
    return match is not None and may_be_zero(match[1] or match[2])


@lru_cache(maxsize=4096)
def _simplified_text(text: str, empty: tuple[str, ...]) -> str | None:
    """Return ``text`` with fewer bounds; None if none is redundant.

    SymPy simplifies it for sizes >= 1. The result must also hold where some of ``empty``, the names
    of sizes that may be 0, are 0. If no size may be 0, SymPy has dropped the redundant bounds of
    ``text`` when it read it, so there is nothing left to do.
    """
    simple = expression_of_positive(text)
    if not empty or len(empty) > MOST or _bounds(str(simple)) >= _bounds(text):
        return None
    for zeros in _cases(empty):
        original, simplified = with_zeros(text, zeros), with_zeros(str(simple), zeros)
        if not (original - simplified).is_zero:
            return None
    return str(simple)


def _bounds(text: str) -> int:
    """Return the number of Min and Max in ``text``."""
    return text.count("Min(") + text.count("Max(")


def _cases(empty: Iterable[str]) -> Iterator[frozenset[str]]:
    """Yield every nonempty subset of ``empty``: the symbols that are 0 in one run."""
    names = sorted(empty)
    for count in range(1, len(names) + 1):
        yield from map(frozenset, combinations(names, count))
