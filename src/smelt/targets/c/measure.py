"""Time each kernel of a library on this machine and write the times to its report."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smelt.errors import UsageError
from smelt.native.emit.names import check_identifier
from smelt.runtime.c_library import CLibrary
from smelt.runtime.files import write_together
from smelt.runtime.interface import Value
from smelt.targets.c.report_file import FILE, read
from smelt.targets.c.saved import sizes_of

WARM_UP = 2
"""Untimed runs first: caches fill, clock rates rise."""


def measure(
    folder: Path, library: CLibrary, inputs: Sequence[Value], *, rounds: int, seconds: float
) -> dict[str, Any]:
    """Time up to ``rounds`` runs, or ``seconds``; write and return the report of ``folder``.

    The report gets the least seconds of each kernel. ``library`` is the library of the folder.
    Raises UsageError E616 if it was compiled without the option ``profile``, or the report belongs
    to another library.
    """
    report = read(folder)
    name = check_identifier(str(report["name"]))
    steps = sizes_of(name, (folder / f"{name}.h").read_bytes()).get("STEPS_COUNT")
    if steps != len(report["kernels"]):
        problem = (
            "has no clock" if steps is None else f"has {steps} steps, but its report lists others"
        )
        raise UsageError(
            "E616",
            f"the library in {str(folder)!r} {problem}",
            fix="compile the model again with --option profile=true",
            why="kernels are timed by clocks that --option profile=true compiles in",
        )
    ticks = (ctypes.c_uint64 * steps).in_dll(ctypes.CDLL(str(library.library)), f"{name}_ticks")
    end = time.perf_counter() + seconds
    least: list[int] = []
    done = 0
    while done < WARM_UP + 1 or (done < WARM_UP + rounds and time.perf_counter() < end):
        ctypes.memset(ticks, 0, ctypes.sizeof(ticks))
        library(*inputs)
        if done >= WARM_UP:
            least = [*map(min, least, ticks)] if least else list(ticks)
        done += 1
    for kernel, spent in zip(report["kernels"], least, strict=True):
        kernel["seconds"] = spent / 1e9
    report["seconds"] = sum(least) / 1e9
    write_together({folder / FILE: (json.dumps(report, indent=1) + "\n").encode()})
    return report
