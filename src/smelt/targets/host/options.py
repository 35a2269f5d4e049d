"""The options of the target."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import UsageError, did_you_mean

ENGINES = ("numpy", "native", "auto")


@dataclass(frozen=True)
class Options:
    """How programs run. Raises UsageError E660 for what it cannot be.

    ``engine``: ``numpy`` calls NumPy, BLAS and LAPACK step by step. ``native`` compiles the
    program with the C compiler of this machine when it is first called, and keeps it for later
    runs; what that engine lacks, or a machine cannot compile, NumPy runs as a whole. ``auto``
    begins with NumPy and compiles in the background what has run long enough to be worth it, so
    later calls may differ from the first by rounding.
    """

    engine: str = "numpy"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UsageError(
                "E660",
                f"target 'host' takes no option engine={self.engine!r}",
                why=f"engine is one of {', '.join(ENGINES)}",
                fix=did_you_mean(self.engine, ENGINES, ""),
            )
