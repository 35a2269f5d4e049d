"""``report.json``: what a library takes, in all and kernel by kernel; time where it was measured.

Times come from a library that was compiled with the option ``profile``: it asks the caller's
``NAME_clock`` around each step and sums what passed in ``NAME_ticks`` (see ``measure.py``).
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
"""Nanoseconds: the clock of a library that runs here."""


def clock_file(name: str) -> bytes:
    """C that defines the clock of the library ``name``."""
    return CLOCK.format(name=name).encode()


def to_json(
    name: str,
    memory: MemoryPlan,
    facts: Mapping[str, Any],
    kernels: Sequence[KernelWork],
    functions: Mapping[int, str],
) -> bytes:
    """The report as a file, the same for the same library. ``functions`` are those that are called,
    by step; a kernel without one moves nothing."""
    document = {
        "schema": SCHEMA,
        "name": name,
        **{key: value for key, value in facts.items() if isinstance(value, int | list)},
        "alignment": memory.alignment,
        "kernels": [{**kernel, "function": functions.get(kernel["step"])} for kernel in kernels],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def read(folder: Path) -> dict[str, Any]:
    """The report in ``folder``; raises UsageError E616 if there is none that can be read."""
    try:
        document = json.loads((folder / FILE).read_bytes())
        if document["schema"] == SCHEMA and isinstance(document["kernels"], list):
            return dict(document)
        why = f"its schema is {document['schema']!r}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = str(error) or repr(error)
    raise UsageError(
        "E616",
        f"{str(folder)!r} holds no {FILE} of target 'c'",
        why=why,
        fix="compile the model again with --target c --option profile=true",
    )
