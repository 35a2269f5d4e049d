"""Prove sizes equal where one is written with ``min`` and the other with ``max``.

JAX writes the size of ``x[2:]`` as ``N - min(N, 2)`` and that of ``x[:-2]`` as ``max(0, N - 2)``,
so it does not see that ``x[2:] - x[:-2]`` has operands of equal shape. ``max(a, b)`` is
``a - min(a - b, 0)``, and ``min(a, b)`` is ``b + min(a - b, 0)``. After this rewrite, equal sizes
have the same text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from smelt.frontends.jax.compat import (
    SymbolicScope,
    is_symbolic,
    min_dim,
    scope_of,
    symbolic_shape,
)
from smelt.frontends.jax.open_sizes.symbols import Algebra, evaluate, parse

_EXTREMES = ("min(", "max(")


def equal_by_min_max(size: Any, other: Any) -> bool:
    """True if ``other`` equals ``size`` and differs only in its use of ``min`` and ``max``."""
    if not is_symbolic(other) or scope_of(other) is not scope_of(size):
        return False
    texts = str(size), str(other)
    if not any(name in text for name in _EXTREMES for text in texts):
        return False
    return _are_equal(*texts, scope_of(size))


@lru_cache(maxsize=1024)
def _are_equal(size: str, other: str, scope: SymbolicScope) -> bool:
    """True if the difference of the two rewritten sizes is 0 for JAX."""
    meaning = Algebra(lambda name: symbolic_shape(name, scope)[0], int, _apply)
    size_value, other_value = (evaluate(parse(text), meaning) for text in (size, other))
    return str(operator.sub(size_value, other_value)) == "0"


_REWRITTEN: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": lambda a, b: a - _min_with_zero(a - b),
    "min": lambda a, b: b + _min_with_zero(a - b),
}


def _apply(name: str, a: Any, b: Any) -> Any:
    """Return the size ``a name b``, with ``max`` and ``min`` rewritten as in the module's text."""
    return _REWRITTEN[name](a, b)


def _min_with_zero(size: Any) -> Any:
    """Return ``min(size, 0)`` in one normal form.

    ``min(-size, 0)`` is ``min(size, 0) - size``, so the shorter text of the two is used for both.
    """
    if not is_symbolic(size):
        return min(size, 0)
    opposite = -size
    text, opposite_text = str(size), str(opposite)
    if (len(opposite_text), opposite_text) < (len(text), text):
        return size + min_dim(opposite, 0)
    return min_dim(size, 0)
