"""The options of the target."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from smelt.errors import UsageError, did_you_mean
from smelt.runtime.jit.variables import ENGINE

ENGINES = ("numpy", "native", "auto")
MOST_THREADS = 64


def default_engine() -> str:
    """``$SMELT_HOST_ENGINE``, or ``auto``."""
    return os.environ.get(ENGINE) or "auto"


@dataclass(frozen=True)
class Options:
    """How programs run. Raises UsageError E660 for what it cannot be.

    ``engine``: ``numpy`` calls NumPy, BLAS and LAPACK step by step, and gives the same bits at
    every call. ``native`` compiles the program with the C compiler of this machine when it is first
    called, and keeps it for later runs; what that engine lacks, or a machine cannot compile, NumPy
    runs as a whole. ``auto`` does so in the background: NumPy runs the calls until then, so later
    ones may differ from the first by rounding. What was kept is loaded before the first call.

    ``threads``: into how many parts compiled programs cut costly steps, which as many threads
    compute at once. The process has one set of them, so while one call has it, others compute
    alone. The bits are those of one thread, but for products by BLAS, whose rows are cut, too; BLAS
    itself then keeps to one thread in this process. NumPy is left to its own threads.

    ``views``: whether results of programs of known sizes that only show elements of inputs, such as
    a transposed one, are views of these, as in NumPy. They cannot be written, and change as the
    inputs do. Without it, every result is an array of its own.
    """

    engine: str = field(default_factory=default_engine)
    threads: int = 1
    views: bool = False

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UsageError(
                "E660",
                f"target 'host' takes no option engine={self.engine!r}",
                why=f"engine, or {ENGINE} for who says none, is one of {', '.join(ENGINES)}",
                fix=did_you_mean(self.engine, ENGINES, ""),
            )
        if not 1 <= self.threads <= MOST_THREADS:
            raise UsageError(
                "E660",
                f"target 'host' takes no option threads={self.threads}",
                why=f"it is a number from 1 to {MOST_THREADS}",
            )
