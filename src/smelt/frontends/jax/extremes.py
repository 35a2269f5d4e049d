"""Sizes that are equal, though one is spelled with ``min`` and the other with ``max``.

The size of ``x[2:]`` is ``N - min(N, 2)`` to JAX and that of ``x[:-2]`` is ``max(0, N - 2)``, so
their difference would not be one of equal shapes. ``max(a, b)`` is ``a - min(a - b, 0)``, and
``min(a, b)`` is ``b + min(a - b, 0)``: with nothing but such minima, equal sizes have one
spelling.
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
from smelt.frontends.jax.symbols import Algebra, evaluate, parse

_EXTREMES = ("min(", "max(")


def is_respelled(size: Any, other: Any) -> bool:
    """True if ``other`` is ``size`` in another spelling by ``min`` and ``max``."""
    if not is_symbolic(other) or scope_of(other) is not scope_of(size):
        return False
    texts = str(size), str(other)
    if not any(name in text for name in _EXTREMES for text in texts):
        return False
    return _are_equal(*texts, scope_of(size))


@lru_cache(maxsize=1024)
def _are_equal(size: str, other: str, scope: SymbolicScope) -> bool:
    meaning = Algebra(lambda name: symbolic_shape(name, scope)[0], int, _apply)
    left, right = (evaluate(parse(text), meaning) for text in (size, other))
    return str(operator.sub(left, right)) == "0"


_APPLIED: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": lambda a, b: a - _least(a - b),
    "min": lambda a, b: b + _least(a - b),
}


def _apply(name: str, a: Any, b: Any) -> Any:
    return _APPLIED[name](a, b)


def _least(size: Any) -> Any:
    """The lesser of ``size`` and 0. That of ``-size`` is the same less ``size``, so one of the
    two stands for both."""
    if not is_symbolic(size):
        return min(size, 0)
    opposite = -size
    texts = [(len(text), text) for text in (str(opposite), str(size))]
    return size + min_dim(opposite, 0) if texts[0] < texts[1] else min_dim(size, 0)
