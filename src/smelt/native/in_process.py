"""A Program as C for this process: one function, weights by pointer, and its end told.

Nothing of one model is in the text but sizes and operators, so models of one structure share a
library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.blas import binding
from smelt.native.memory import allocate
from smelt.native.unit import Unit
from smelt.program.instruction import Program

FUNCTION = "smelt_run"
HEAD = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
"""
_NOTE = re.compile(r" /\*[^*]*\*/$")
"""Which step of which node a call is, at its end."""

SIGNATURE = (
    f"int {FUNCTION}(const void *const *inputs, void *const *outputs, unsigned char *memory,\n"
    "    const void *const *weights)"
)


@dataclass(frozen=True)
class Source:
    """``text`` defines ``FUNCTION``, which is given ``memory_bytes`` and pointers to ``weights``.

    It returns 0, or another number where there is no result.
    """

    text: str
    weights: tuple[np.ndarray, ...]
    memory_bytes: int


def source_of(program: Program) -> Source:
    """The text of a ``program`` as ``schedule.planned`` makes it."""
    memory = allocate(program)
    unit = Unit("smelt", program, memory, constants="table", tells_status=True)
    body = [
        "int ended = 0, *const status = &ended;",
        *(f"(void){name};" for name in ("inputs", "outputs", "memory", "weights")),
        *(f"if ({check}) return 1;" for check in unit.checks),
        *(_NOTE.sub("", call) for call in unit.calls),
        "return *status;",
    ]
    run = "\n    ".join([f"{SIGNATURE}\n{{", *body]) + "\n}\n"
    functions = (unit.support, unit.tests, unit.functions)
    parts = [HEAD, *(text for each in functions for text in each.values()), run]
    weights = tuple(_aligned(weight.array) for weight in unit.weights.values())
    parts.append(binding(unit.support))
    return Source("\n".join(parts), weights, memory.arena_bytes)


def _aligned(array: np.ndarray) -> np.ndarray:
    return np.require(array, requirements=("C", "A"))
