"""The options of the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smelt.errors import UsageError, did_you_mean
from smelt.native.names import check_identifier
from smelt.targets.c.cpus import CPUS

KNOWN: Mapping[str, tuple[str, ...]] = {
    "weights": ("auto", "hex", "string", "incbin", "bin"),
    "cpu": tuple(CPUS),
    "project": ("none", "main", "cmake", "zephyr"),
    "quantized": ("integers", "floats", "fixed"),
}
"""The values of options that are words."""

ALIGNMENTS = (8, 4096)
"""Bytes: the widest element, and a page."""

MOST_THREADS = 256

SMALL = 1 << 20
"""Bytes of weights up to which hexadecimal words compile in no time."""


@dataclass(frozen=True)
class Options:
    """How the library is written. Raises UsageError E660 for what it cannot be.

    ``name``: prefix of files, functions and macros. ``weights``: ``hex`` words or ``string``s in C;
    ``incbin``, a file that the assembler of gcc or clang includes; ``bin``, a file that the caller
    maps and gives to each run; ``auto``, hex up to 1 MiB and incbin beyond. ``cpu``: ``generic``
    runs on any and chooses the vectors of x86 at run time; ``native`` takes those that the C
    compiler is told of; others are rows of ``cpus.py``. ``alignment``: bytes, a power of 2, that
    the arena and what lies in it begin at, by default what suits the cpu. ``project``: what else is
    written: ``main``, an example of a call; ``cmake``, that and a CMakeLists.txt; ``zephyr``, a
    module of Zephyr. ``threads``: into how many parts costly kernels are cut, which a caller of
    ``<name>_run_parallel`` computes at the same time; the bits are those of one thread.
    ``arena``: the most bytes that the arena may have; where it would have more, first layers of an
    image network, or layers wherever too much is live, are computed in bands, some rows twice.
    ``profile``: each step asks the
    clock of the caller, ``NAME_clock``, and ``NAME_ticks`` sums what passed. ``quantized``: what
    stands between DequantizeLinear and QuantizeLinear is computed in ``integers``, off by one step
    at most; in ``fixed`` points, integers whose scales are multipliers and shifts, too, off by one
    step more, without floats; or in ``floats`` as it stands.
    """

    name: str = "model"
    weights: str = "auto"
    cpu: str = "generic"
    alignment: int | None = None
    project: str = "none"
    threads: int = 1
    profile: bool = False
    arena: int | None = None
    quantized: str = "integers"

    def __post_init__(self) -> None:
        check_identifier(self.name)
        if self.name == "report":
            raise refused(
                "name='report'",
                "report.json is the report of a library, and its interface would be called so",
                "choose another with --option name=...",
            )
        for option, known in KNOWN.items():
            value = getattr(self, option)
            if value not in known:
                one_of = f"{option} is one of {', '.join(known)}"
                raise refused(f"{option}={value!r}", one_of, did_you_mean(value, known, ""))
        if not 1 <= self.threads <= MOST_THREADS:
            raise refused(f"threads={self.threads}", f"it is a number from 1 to {MOST_THREADS}")
        if self.arena is not None and self.arena < 0:
            raise refused(f"arena={self.arena}", "it is the most bytes that the arena may have")
        lowest, highest = ALIGNMENTS
        bytes_ = self.arena_alignment
        if not lowest <= bytes_ <= highest or bytes_ & (bytes_ - 1):
            why = f"it is a power of 2 from {lowest} to {highest}"
            raise refused(f"alignment={self.alignment}", why)

    @property
    def arena_alignment(self) -> int:
        """Bytes that the arena and what lies in it begin at."""
        return CPUS[self.cpu].alignment if self.alignment is None else self.alignment

    def form(self, weights_bytes: int) -> str:
        """How so many bytes of weights are written."""
        if self.weights != "auto":
            return self.weights
        return "hex" if weights_bytes <= SMALL else "incbin"


def refused(given: str, why: str, fix: str = "") -> UsageError:
    """The error for an option that is no such."""
    return UsageError("E660", f"target 'c' takes no option {given}", why=why, fix=fix)
