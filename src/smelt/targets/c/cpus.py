"""The CPUs of the option ``cpu``, one row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from smelt.native.kernels.register_blocks import ANY, SCALAR, Machine
from smelt.program.memory import ALIGNMENT


@dataclass(frozen=True, slots=True)
class Cpu:
    """How code for one CPU differs.

    ``is_chosen_at_run_time``: each run chooses among the versions of ``versions.py``. ``lanes``:
    floats per vector, None if the C compiler's flags decide. ``alignment``: default alignment in
    bytes of the arena and its buffers: a cache line, or without caches a double or a vector.
    ``machine``: the sizes of micro-kernels. ``flags``: those of arm gcc, to measure code and stack.
    """

    is_chosen_at_run_time: bool = False
    lanes: int | None = None
    alignment: int = ALIGNMENT
    machine: Machine = ANY
    flags: tuple[str, ...] = ()


HARD = "-mfloat-abi=hard"
_scalar = partial(Cpu, lanes=1, machine=SCALAR)
CPUS: Mapping[str, Cpu] = {
    "generic": Cpu(is_chosen_at_run_time=True),
    "native": Cpu(),
    **dict.fromkeys(("cortex-m0", "cortex-m33"), _scalar(alignment=8)),
    "cortex-m3": _scalar(alignment=8, flags=("-mcpu=cortex-m3",)),
    "cortex-m4": _scalar(alignment=8, flags=("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", HARD)),
    "cortex-m7": _scalar(alignment=32, flags=("-mcpu=cortex-m7", "-mfpu=fpv5-d16", HARD)),
    "cortex-m55": Cpu(lanes=4, alignment=16),
    "cortex-m85": Cpu(lanes=4, alignment=32),
    **dict.fromkeys(("rv32", "rv64"), _scalar(alignment=16)),
}
"""By name. M7 and M85 have 32-byte cache lines, M55 and M85 16-byte vectors (Helium)."""
