"""Instructions of each kernel on a CPU, estimated from counts under QEMU.

``cpu_costs.json`` has one table per CPU; ``python -m bench.cpu_costs --write`` counts and fits it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from smelt.native.work import KernelWork
from smelt.program.instruction import Program

FILE = "cpu_costs.json"
OTHER = {True: "other int8", False: "other float"}
"""The rows of kinds that were not measured, by whether results are bytes."""

FREE = frozenset({"Reshape", "Identity", "Squeeze", "Unsqueeze", "Flatten"})
"""Operators that cost nothing where they have no C function."""


class Cost(NamedTuple):
    """Instructions per multiplication, per byte read and per byte written."""

    macs: float
    read: float
    written: float

    def instructions(self, work: KernelWork) -> int:
        """Return the estimated instructions of a kernel with this ``work``."""
        read, written = work["bytes_read"], work["bytes_written"]
        return round(self.macs * work["macs"] + self.read * read + self.written * written)


class CpuCosts(NamedTuple):
    """The costs of one CPU: by kind of kernel, and bytes of code per byte of C text."""

    kinds: Mapping[str, Cost]
    text_ratio: float


@cache
def costs_of(cpu: str) -> CpuCosts | None:
    """Return the costs of a ``cpu``; None if nothing was measured on it."""
    tables = _tables()
    if cpu not in tables:
        return None
    kinds = {kind: Cost(*row) for kind, row in tables[cpu]["kinds"].items()}
    return CpuCosts(kinds, tables[cpu]["text_ratio"])


def measured_cpus() -> list[str]:
    """Return the values of the option ``cpu`` that have measured costs."""
    return sorted(_tables())


@cache
def _tables() -> dict[str, Any]:
    """Return the tables of all CPUs."""
    return dict(json.loads(files("smelt.targets.c").joinpath(FILE).read_bytes()))


def kinds_of(program: Program) -> list[str]:
    """Return the kind of each instruction: its operator and ``int8`` or ``float``.

    A kernel counts as ``int8`` if its first result has elements of one byte.
    """
    found = []
    for each in program.instructions:
        slots = [program.slots[slot] for slot in each.outputs if slot >= 0]
        width = "int8" if slots and slots[0].dtype.itemsize == 1 else "float"
        found.append(f"{each.op.rpartition('::')[2]} {width}")
    return found


def estimated(
    costs: CpuCosts, program: Program, kernels: Sequence[KernelWork], called: Mapping[int, object]
) -> list[int | None]:
    """Return the instructions of each kernel; None for bodies, whose iterations are unknown.

    A kernel without an entry in ``called`` has no C function and costs nothing.
    """
    counts: list[int | None] = []
    for kind, work, each in zip(kinds_of(program), kernels, program.instructions, strict=True):
        if each.bodies:
            counts.append(None)
        elif work["step"] not in called:
            counts.append(0)
        else:
            row = costs.kinds.get(kind) or costs.kinds[OTHER[kind.endswith("int8")]]
            counts.append(row.instructions(work))
    return counts


def unmeasured(costs: CpuCosts, program: Program) -> list[str]:
    """Return the kinds of ``program`` that no model measured; their costs are those of others."""
    steps = zip(kinds_of(program), program.instructions, strict=True)
    kinds = dict.fromkeys(kind for kind, each in steps if not each.bodies)
    return [each for each in kinds if each not in costs.kinds and each.split()[0] not in FREE]
