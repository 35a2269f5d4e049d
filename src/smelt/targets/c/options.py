"""The options of the target ``c``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from smelt.errors import UsageError, did_you_mean
from smelt.native.emit.names import check_identifier
from smelt.native.kernels.register_blocks import Machine
from smelt.targets.c.cpu_costs import costs_of, measured_cpus
from smelt.targets.c.cpus import CPUS
from smelt.targets.c.limits import limits
from smelt.targets.c.project import FILES, classifies

KNOWN: Mapping[str, tuple[str, ...]] = {
    "weights": ("auto", "hex", "string", "incbin", "bin"),
    "cpu": tuple(CPUS),
    "project": tuple(FILES),
    "size": ("default", "small"),
    "quantized": ("integers", "floats", "fixed"),
}
"""The allowed values of options that are words."""

ALIGNMENTS = (8, 4096)
"""The least and greatest alignment in bytes: the widest element, and a page."""

MOST_THREADS = 256

MOST_HEX_BYTES = 1 << 20
"""The most bytes of weights that compile quickly as hexadecimal words."""


@dataclass(frozen=True)
class Options:
    """How the library is written; raises UsageError E660 for values that are not allowed.

    ``name``: prefix of files, functions and macros. ``weights``: ``hex`` words or ``string``s in C;
    ``incbin``, a file that the assembler of gcc or clang includes; ``bin``, a file that the caller
    maps and passes to each run; ``auto``, hex up to 1 MiB, else incbin. ``cpu``: ``generic`` runs
    on any CPU and chooses x86 vectors at run time; ``native`` uses the C compiler's flags; other
    values are rows of ``cpus.py``. ``alignment``: a power of 2, the alignment in bytes of the arena
    and its buffers; the default suits the cpu. ``project``: additional files: ``main``, an example
    of a call; ``cmake``, that and a CMakeLists.txt; ``zephyr``, a Zephyr module; ``arduino``,
    ``platformio``, ``esp-idf``, ``cmsis-pack``, a package of that kind with an example that reads
    tensors and prints classes; ``session``, a shared library and its C interface with names, shapes
    and errors. ``threads``: the number of shards of costly kernels, which a caller of
    ``<name>_run_parallel`` computes in parallel; results have the same bits as on one thread.
    ``arena``: the most bytes of the arena; to fit, the first layers of an image network, or layers
    at the memory peak, are computed in row bands, some rows twice. ``profile``: each step reads the
    caller's ``NAME_clock``; ``NAME_ticks`` sums the differences. ``quantized``: how operators
    between DequantizeLinear and QuantizeLinear are computed: in ``integers``, off by at most one
    step; in ``fixed`` point without any floats, with scales as multipliers and shifts, off by one
    step more; or in ``floats`` as written.
    ``fit``: the memory of the board, such as ``flash=256K,ram=64K``; a library that needs more is
    refused. Only for a cpu with measured costs: cortex-m3, cortex-m4, cortex-m7.
    ``size``: ``small`` writes less code that runs slower (1.1 to 1.9 times the instructions on five
    networks for microcontrollers): layers share functions for convolutions and products of floats.
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
    fit: str | None = None
    size: str = "default"

    def __post_init__(self) -> None:
        """Raise UsageError E660 for a value that is not allowed."""
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
                raise refused(
                    f"{option}={value!r}",
                    one_of,
                    did_you_mean(value, known, f"use {option}={next(iter(known))}"),
                )
        if not 1 <= self.threads <= MOST_THREADS:
            raise refused(
                f"threads={self.threads}",
                f"threads is a number from 1 to {MOST_THREADS}",
                "use --option threads=1",
            )
        if self.size == "small" and self.threads > 1:
            raise refused(
                f"size=small and threads={self.threads}",
                "the functions that layers share are not divided among threads",
                "leave out one of both options",
            )
        if self.arena is not None and self.arena < 0:
            raise refused(
                f"arena={self.arena}",
                "arena is the most bytes that the arena may have, 0 or more",
                "leave out --option arena, which sets no limit",
            )
        if self.weights == "bin" and classifies(self.project):
            raise refused(
                f"weights=bin and project={self.project}",
                "the example of this project has no file system to load the weights from",
                "use --option weights=hex or weights=incbin, which place weights in flash",
            )
        self._check_fit()
        lowest, highest = ALIGNMENTS
        bytes_ = self.arena_alignment
        if not lowest <= bytes_ <= highest or bytes_ & (bytes_ - 1):
            raise refused(
                f"alignment={self.alignment}",
                f"alignment is a power of 2 from {lowest} to {highest}",
                "leave out --option alignment, which suits the cpu",
            )

    def _check_fit(self) -> None:
        """Raise UsageError E660 for limits of another form, or a cpu without measured costs."""
        if self.fit is None:
            return
        if limits(self.fit) is None:
            raise refused(
                f"fit={self.fit!r}",
                "fit has the limits flash and ram, or one of them, in bytes, K or M, each once",
                "use --option fit=flash=256K,ram=64K",
            )
        if costs_of(self.cpu) is None:
            raise refused(
                f"fit={self.fit} and cpu={self.cpu}",
                "the instructions and the code of this cpu were not measured",
                f"use --option cpu= with one of {', '.join(measured_cpus())}",
            )

    @property
    def machine(self) -> Machine:
        """The sizes of micro-kernels: those of the cpu, or none with ``size=small``."""
        return replace(CPUS[self.cpu].machine, small=self.size == "small")

    @property
    def arena_alignment(self) -> int:
        """The alignment in bytes of the arena and its buffers."""
        return CPUS[self.cpu].alignment if self.alignment is None else self.alignment

    def form(self, weights_bytes: int) -> str:
        """Return the form in which so many bytes of weights are written."""
        if self.weights != "auto":
            return self.weights
        return "hex" if weights_bytes <= MOST_HEX_BYTES else "incbin"


def refused(given: str, why: str, fix: str = "") -> UsageError:
    """Return error E660 for a wrong option."""
    return UsageError("E660", f"target 'c' does not compile with {given}", why=why, fix=fix)
