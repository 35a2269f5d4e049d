"""The options of the target ``host``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from smelt.errors import UsageError, did_you_mean
from smelt.runtime.jit.pool import MOST_THREADS
from smelt.runtime.jit.variables import ENGINE

ENGINES = ("numpy", "native", "auto")


def default_engine() -> str:
    """Return ``$SMELT_HOST_ENGINE``, or ``auto``."""
    return os.environ.get(ENGINE) or "auto"


@dataclass(frozen=True)
class Options:
    """How programs run; raises UsageError E660 for values that are not allowed.

    ``engine``: ``numpy`` calls NumPy, BLAS and LAPACK step by step, with the same bits on every
    call. ``native`` compiles the program with this machine's C compiler on the first call and
    caches it; NumPy runs programs that cannot be compiled. ``auto`` compiles in the background
    while NumPy runs the calls, so later calls may differ from the first by rounding. Cached
    libraries are loaded before the first call. Each of the first sets of input shapes is compiled
    by itself; one program of open sizes then runs all others.

    ``threads``: the number of shards of costly steps in compiled programs, each on one thread. The
    process has one thread pool; while one call uses it, others run on one thread. Results have the
    bits of one thread, except products by BLAS, which are also sharded; BLAS itself then uses one
    thread. NumPy uses its own threads.

    ``views``: results of static programs that only show elements of inputs, such as a transposed
    one, are read-only views that change with the inputs, as in NumPy. Without it, every result is a
    new array.
    """

    engine: str = field(default_factory=default_engine)
    threads: int = 1
    views: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError E660 for a value that is not allowed."""
        if self.engine not in ENGINES:
            raise UsageError(
                "E660",
                f"{self.engine!r} is not a value of the option engine of target host",
                why=f"the option engine (by default the variable {ENGINE}) names a known engine",
                fix=did_you_mean(self.engine, ENGINES, f"use one of {', '.join(ENGINES)}"),
            )
        if not 1 <= self.threads <= MOST_THREADS:
            raise UsageError(
                "E660",
                f"{self.threads} is not a value of the option threads of target host",
                why=f"the option threads is a number from 1 to {MOST_THREADS}",
                fix="--option threads=1",
            )
