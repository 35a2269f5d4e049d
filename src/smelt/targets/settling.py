"""Runners that get faster while they run, because they compile in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from smelt.runtime.interface import Value

Runner: TypeAlias = Callable[..., Sequence[Value]]
"""Runs an artifact on this machine: values in interface order to values in interface order."""


@runtime_checkable
class Settles(Protocol):
    """A runner that gets faster while it runs."""

    def ready(self, timeout: float | None) -> bool:
        """Whether that is over, after at most ``timeout`` seconds, or as long as it takes."""


def is_ready(runner: Runner, timeout: float | None) -> bool:
    """Whether ``runner`` gets no faster, after at most ``timeout`` seconds."""
    return not isinstance(runner, Settles) or runner.ready(timeout)


def settled(runner: Runner) -> Runner:
    """``runner``, which gives no result before it would give the same one again."""

    def run(*inputs: Value) -> Sequence[Value]:
        results = runner(*inputs)
        if is_ready(runner, 0.0):
            return results
        is_ready(runner, None)
        return runner(*inputs)

    return run
