"""The source of a compile: a model, or a function with the arguments of its trace."""

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
    """A model, or a function in ``model`` with its trace arguments.

    ``filled`` holds the trace options that say where weights come from.
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
        """Parse the command line; raises UsageError for contradictory arguments."""
        positional, keyword = parse_inputs(specs)
        values = parse_static(static)
        return cls(_model_or_function(source), positional, keyword, values, x64 or None, filled)

    def tracing(self) -> dict[str, Any]:
        """Return the options of the trace; empty if the command line has none."""
        if not (self.keyword or self.static or self.filled):
            return {}
        return {"kwargs": self.keyword, "static": self.static, **self.filled}

    def reference(self) -> Any:
        """Return what the artifact is compared with: a callable function, or a model."""
        if self.filled:  # only the trace holds the weights of the checkpoint
            from smelt.compiler import trace

            return trace(self.model, *self.positional, x64=self.x64, **self.tracing())
        if callable(self.model):
            return called(self.model, self.positional, self.keyword, self.static, self.x64)
        return self.model


def _model_or_function(source: str) -> Any:
    if is_function(source):
        return find_function(source)
    return sys.stdin.buffer.read() if source == STANDARD else source
