"""The options of the backend ``smelt`` of ``torch.compile``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from smelt.errors import UsageError, did_you_mean
from smelt.runtime.jit.pool import MOST_THREADS


def _threads() -> int:
    """Return the number of threads of PyTorch, as far as the target ``host`` takes as many."""
    threads: int = torch.get_num_threads()
    return min(threads, MOST_THREADS)


@dataclass(frozen=True)
class Settings:
    """How graphs are compiled and run.

    ``engine``, ``threads`` and ``pipeline`` are those of the target ``host``; the first call waits
    for the compiler by default. ``freeze``: parameters and buffers are constants of the program,
    else arguments of each run. ``fallback``: PyTorch runs graphs that cannot be compiled, after a
    warning; else they are errors. ``verify``: the first call of a program also runs the graph by
    PyTorch, and a program that differs counts as one that cannot be compiled.
    """

    engine: str = "native"
    threads: int = field(default_factory=_threads)
    pipeline: str = "default"
    freeze: bool = True
    fallback: bool = True
    verify: bool = True

    @staticmethod
    def of(options: Mapping[str, Any] | None, mode: str | None) -> Settings:
        """Return the settings in ``options``; raises UsageError E660 for unknown ones and for
        modes other than ``default``.
        """
        known = [each.name for each in fields(Settings)]
        unknown = [name for name in options or () if name not in known]
        if unknown:
            raise UsageError(
                "E660",
                f"the backend smelt of torch.compile has no option {unknown[0]!r}",
                why=f"its options are {', '.join(known)}",
                fix=did_you_mean(unknown[0], known, "leave it out"),
            )
        if mode not in (None, "default"):
            raise UsageError(
                "E660",
                f"the backend smelt of torch.compile has no mode {mode!r}",
                why="modes choose among settings of PyTorch's own backend",
                fix='leave out the mode, or give options={"threads": 2}',
            )
        return Settings(**(options or {}))
