"""The source of a compile: a model, or a function with the arguments of its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smelt.cli.arguments import opened_source
from smelt.cli.tracing import Calling

if TYPE_CHECKING:
    from smelt.candidate import Call


@dataclass(frozen=True)
class Source:
    """A model, or a function in ``model`` with its trace arguments.

    ``filled`` holds the trace options that say where weights come from.
    """

    model: Any
    how: Call
    filled: Mapping[str, Any]

    @classmethod
    def read(
        cls,
        source: str,
        specs: list[str] | None,
        calling: Calling,
        filled: Mapping[str, Any],
    ) -> Source:
        """Parse the command line; raises UsageError for contradictory arguments."""
        how = calling.typed(specs)
        return cls(opened_source(source), how, filled)

    def tracing(self) -> dict[str, Any]:
        """Return the options of the trace; empty if the command line has none."""
        if not (self.how.keyword or self.how.static or self.filled):
            return {}
        return {"kwargs": self.how.keyword, "static": self.how.static, **self.filled}

    def reference(self) -> Any:
        """Return what the artifact is compared with: a callable function, or a model."""
        if self.filled:  # only the trace holds the weights of the checkpoint
            from smelt.compiler import trace

            return trace(self.model, *self.how.positional, x64=self.how.x64, **self.tracing())
        return self.how.bound(self.model) if callable(self.model) else self.model
