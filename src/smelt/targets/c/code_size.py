"""The bytes of code and stack of a library, measured by arm gcc or estimated."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from smelt.targets.c.cpu_costs import CpuCosts

COMPILER, SIZE = "arm-none-eabi-gcc", "arm-none-eabi-size"
LEVEL = "-O2"
STACK = 1024
"""Estimated bytes of stack: no frame on Cortex-M0 to M7 is larger, except of doubles."""

FRAMES = 3
"""How many of the largest frames are added to that of a run: a kernel and what it calls."""

OF_MATH = 128
"""Bytes of stack for functions of ``math.h``, which gcc does not list."""


class CodeSize(NamedTuple):
    """Bytes of code with constant tables, bytes of stack, and where both are from."""

    text: int
    stack: int
    source: str


def measured(name: str, files: Mapping[str, bytes], flags: tuple[str, ...]) -> CodeSize | None:
    """Return the sizes of the library ``name`` by arm gcc; None if it is not installed or fails.

    The stack is the frame of a run, the largest other frames, and an allowance for ``math.h``.
    """
    if not (shutil.which(COMPILER) and shutil.which(SIZE)):
        return None
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for file in (f"{name}.h", f"{name}.c", f"{name}_weights.h"):
            (folder / file).write_bytes(files[file])
        compiled = [COMPILER, "-mthumb", *flags, "-std=gnu99", LEVEL, "-fstack-usage", "-w"]
        command = [*compiled, "-c", f"{name}.c", "-o", "code.o"]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True)
        if done.returncode:
            return None
        listed = subprocess.run(
            [SIZE, "-A", "code.o"], cwd=folder, check=True, capture_output=True, text=True
        )
        text = sum(
            int(line.split()[1])
            for line in listed.stdout.splitlines()
            if line.startswith((".text", ".rodata"))
        )
        frames = [line.split("\t") for line in (folder / "code.su").read_text().splitlines()]
        sizes = {where.rpartition(":")[2]: int(size) for where, size, _ in frames}
        run = sizes.pop(f"{name}_run", 0)
        stack = run + sum(sorted(sizes.values())[-FRAMES:]) + OF_MATH
        return CodeSize(text, stack, f"measured by arm gcc {LEVEL}")


def estimated(costs: CpuCosts, source: bytes) -> CodeSize:
    """Return the sizes estimated from the bytes of the C text ``source``."""
    return CodeSize(round(costs.text_ratio * len(source)), STACK, "estimated")
