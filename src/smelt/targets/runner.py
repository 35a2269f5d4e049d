"""Runners that compile in the background, and become faster when the compiled form is ready."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from smelt.runtime.interface import Value

Runner: TypeAlias = Callable[..., Sequence[Value]]
"""Runs an artifact on this machine; takes and returns values in interface order."""


@runtime_checkable
class CompilesInBackground(Protocol):
    """A runner that becomes faster while it runs."""

    def ready(self, timeout: float | None) -> bool:
        """True if the runner is at full speed after at most ``timeout`` seconds (None: wait for
        it).
        """


def is_ready(runner: Runner, timeout: float | None) -> bool:
    """True if ``runner`` is at full speed, after waiting at most ``timeout`` seconds."""
    return not isinstance(runner, CompilesInBackground) or runner.ready(timeout)


def at_full_speed(runner: Runner) -> Runner:
    """Return ``runner`` wrapped: every result comes from its final form, so it may run twice."""

    def run(*inputs: Value) -> Sequence[Value]:
        """Return the results of the final form; run again if compiling was pending."""
        results = runner(*inputs)
        if is_ready(runner, 0.0):
            return results
        is_ready(runner, timeout=None)
        return runner(*inputs)

    return run
