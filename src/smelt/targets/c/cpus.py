"""What the option ``cpu`` knows of each CPU: a row each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from smelt.program.memory import ALIGNMENT


@dataclass(frozen=True, slots=True)
class Cpu:
    """How code for one CPU differs.

    ``is_chosen_at_run_time``: there are the versions of ``versions.py``, for which each run asks.
    ``lanes``: floats of a vector, None if the C compiler's flags say so. ``alignment``: bytes at
    which the arena and what lies in it begin unless the caller says otherwise: a line of the cache,
    or a double or a vector where there is none.
    """

    is_chosen_at_run_time: bool = False
    lanes: int | None = None
    alignment: int = ALIGNMENT


SCALAR = Cpu(lanes=1, alignment=8)
CPUS: Mapping[str, Cpu] = {
    "generic": Cpu(is_chosen_at_run_time=True),
    "native": Cpu(),
    **dict.fromkeys(("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33"), SCALAR),
    "cortex-m7": Cpu(lanes=1, alignment=32),
    "cortex-m55": Cpu(lanes=4, alignment=16),
    "cortex-m85": Cpu(lanes=4, alignment=32),
    **dict.fromkeys(("rv32", "rv64"), Cpu(lanes=1, alignment=16)),
}
"""By name. The M7 and M85 have lines of 32 bytes, the M55 and M85 vectors of 16 (Helium)."""
