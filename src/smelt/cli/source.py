"""What a command compiles: a model, or a function and how it is traced."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.cli.arguments import STANDARD, find_function, is_function
from smelt.cli.comparing import called
from smelt.cli.tracing import parse_inputs, parse_static


@dataclass(frozen=True)
class Source:
    """``model``, or a function in its place, and the arguments that the function is traced with.

    ``filled`` are the options of a trace that say where weights come from.
    """

    model: Any
    positional: Sequence[Any]
    keyword: Mapping[str, Any]
    static: Mapping[str, Any]
    x64: bool | None
    filled: Mapping[str, Any]

    @classmethod
    def read(
        cls,
        source: str,
        specs: list[str] | None,
        static: list[str] | None,
        x64: bool,
        filled: Mapping[str, Any],
    ) -> Source:
        """What the command line says; raises UsageError for what it cannot mean."""
        positional, keyword = parse_inputs(specs)
        values = parse_static(static)
        return cls(_model_or_function(source), positional, keyword, values, x64 or None, filled)

    def tracing(self) -> dict[str, Any]:
        """The options of a trace; empty if the command line has none."""
        if not (self.keyword or self.static or self.filled):
            return {}
        return {"kwargs": self.keyword, "static": self.static, **self.filled}

    def reference(self) -> Any:
        """What the artifact is compared with: a function that can be called, or a model."""
        if self.filled:  # the function has no numbers to be called with, its trace has
            from smelt.compiler import trace

            return trace(self.model, *self.positional, x64=self.x64, **self.tracing())
        if callable(self.model):
            return called(self.model, self.positional, self.keyword, self.static, self.x64)
        return self.model


def _model_or_function(source: str) -> Any:
    if is_function(source):
        return find_function(source)
    return sys.stdin.buffer.read() if source == STANDARD else source
