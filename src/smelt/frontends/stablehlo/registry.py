"""Readers of StableHLO operators, by operator name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Reader: TypeAlias = Callable[..., Any]
"""Takes the evaluator, the operation and its operands; returns the result, or a list of several."""

READERS: dict[str, Reader] = {}


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Register a reader of the operators ``names``, in StableHLO unless a dialect is named."""

    def register(reader: Reader) -> Reader:
        for name in names:
            READERS[name if "." in name else f"stablehlo.{name}"] = reader
        return reader

    return register
