"""The source of a compile: a model, or a function with the arguments of its trace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smelt.cli.arguments import opened_source
from smelt.cli.tracing import Calling

if TYPE_CHECKING:
    from smelt.check.user_function import Call


@dataclass(frozen=True)
class Source:
    """What to compile: ``model`` is a path, bytes, or a function, which has arguments in ``call``.

    ``checkpoint`` holds the trace options that say where weights come from.
    """

    model: Any
    call: Call
    checkpoint: Mapping[str, Any]

    @classmethod
    def read(
        cls,
        source: str,
        specs: list[str] | None,
        calling: Calling,
        checkpoint: Mapping[str, Any],
    ) -> Source:
        """Return the source that the command line names; raises UsageError E635 and E636."""
        call = calling.typed(specs)
        return cls(opened_source(source), call, checkpoint)

    def tracing(self) -> dict[str, Any]:
        """Return the options of the trace; empty if the command line has none."""
        if not (self.call.keyword or self.call.static or self.checkpoint):
            return {}
        return {"kwargs": self.call.keyword, "static": self.call.static, **self.checkpoint}

    def reference(self) -> Any:
        """Return what the compiled artifact is compared with: a callable function, or a model."""
        if self.checkpoint:  # only the trace holds the weights of the checkpoint
            from smelt.compiler import trace

            return trace(self.model, *self.call.positional, x64=self.call.x64, **self.tracing())
        return self.call.bound(self.model) if callable(self.model) else self.model
