"""``report.json``: memory and work of a library, per kernel; times where they were measured.

Times need a library compiled with the option ``profile``: it reads the caller's ``NAME_clock``
around each step and sums the differences in ``NAME_ticks`` (see ``measure.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smelt.errors import UsageError
from smelt.native.work import KernelWork
from smelt.program.memory import MemoryPlan

FILE = "report.json"
SCHEMA = "smelt.c.report/1"

CLOCK = """\
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <time.h>

uint64_t {name}_clock(void);
uint64_t {name}_clock(void)
{{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}}
"""
"""The C template of a clock in nanoseconds, for a library that runs here."""


def clock_file(name: str) -> bytes:
    """Return C code that defines the clock of the library ``name``."""
    return CLOCK.format(name=name).encode()


def to_json(
    name: str,
    memory: MemoryPlan,
    facts: Mapping[str, Any],
    kernels: Sequence[KernelWork],
    functions: Mapping[int, str],
) -> bytes:
    """Return the report as the bytes of a file, equal for equal libraries.

    ``functions`` has the called C function by step; a kernel without one moves no data.
    """
    document = {
        "schema": SCHEMA,
        "name": name,
        **{key: value for key, value in facts.items() if isinstance(value, int | list)},
        "alignment": memory.alignment,
        "kernels": [{**kernel, "function": functions.get(kernel["step"])} for kernel in kernels],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def read(folder: Path) -> dict[str, Any]:
    """Return the report in ``folder``; raises UsageError E616 if there is no valid one."""
    try:
        document = json.loads((folder / FILE).read_bytes())
        if document["schema"] == SCHEMA and isinstance(document["kernels"], list):
            return dict(document)
        why = f"its schema is {document['schema']!r}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = str(error) or repr(error)
    raise UsageError(
        "E616",
        f"{str(folder)!r} does not hold a {FILE} of target 'c'",
        why=why,
        fix="compile the model again with --target c --option profile=true",
    )
