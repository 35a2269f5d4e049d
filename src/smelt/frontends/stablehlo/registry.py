"""Readers of StableHLO operators, by operator name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Reader: TypeAlias = Callable[..., Any]
"""From the evaluator, the operation and its operands to the result, or to a list of results."""

READERS: dict[str, Reader] = {}
"""The reader of each operator."""


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Register a reader of the operators ``names``, in StableHLO unless a dialect is named."""

    def register(reader: Reader) -> Reader:
        """Register ``reader`` and return it."""
        for name in names:
            READERS[name if "." in name else f"stablehlo.{name}"] = reader
        return reader

    return register
