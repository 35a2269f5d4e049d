"""Readers of StableHLO operators, by operator name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Reader: TypeAlias = Callable[..., Any]
"""``reader(evaluator, operation, *operands)`` returns the result, or a list of results."""

READERS: dict[str, Reader] = {}
"""The reader of each operator."""


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Return a decorator that registers a reader of the operators ``names``.

    A name without a dialect is one of StableHLO.
    """

    def register(reader: Reader) -> Reader:
        """Register ``reader`` and return it."""
        for name in names:
            READERS[name if "." in name else f"stablehlo.{name}"] = reader
        return reader

    return register
