"""Runners that become faster while they run, because they compile in the background."""

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
        """True if it has reached full speed, after at most ``timeout`` seconds (None: wait
        forever).
        """


def is_ready(runner: Runner, timeout: float | None) -> bool:
    """True if ``runner`` is at full speed, after waiting at most ``timeout`` seconds."""
    return not isinstance(runner, CompilesInBackground) or runner.ready(timeout)


def at_full_speed(runner: Runner) -> Runner:
    """Wrap ``runner`` so that every result comes from its final form; it may run twice."""

    def run(*inputs: Value) -> Sequence[Value]:
        results = runner(*inputs)
        if is_ready(runner, 0.0):
            return results
        is_ready(runner, None)
        return runner(*inputs)

    return run
