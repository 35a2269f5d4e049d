"""Describe the memory plan of an artifact as data for a chart: rectangles of bytes over time."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from smelt.check.report.shown import shown
from smelt.program.memory import MemoryPlan, aligned
from smelt.targets.base import Artifact

MOST = 4000
"""The most buffers that are drawn, the largest first; more would make the page slow."""


def memory_of(artifact: Artifact) -> dict[str, Any] | None:
    """Return the memory plan of ``artifact`` as data; None if the target plans no memory.

    ``buffers`` are ``[name, offset, bytes, first step, last step]``, ``live`` the bytes in use at
    each step, ``steps`` the instructions with their source nodes.
    """
    planned = getattr(artifact.plan, "memory", None)
    plan = getattr(planned, "memory", planned)
    if not isinstance(plan, MemoryPlan):
        return None
    rows = sorted(plan.rows(), key=lambda row: -row.size)
    program = plan.program
    return {
        "target": shown(artifact.target, 80),
        "arena_bytes": plan.arena_bytes,
        "bound_bytes": plan.bound_bytes,
        "scratch_bytes": plan.scratch_bytes,
        "constant_bytes": sum(array.nbytes for array in program.constants.values()),
        "buffers": [
            [shown(row.value, 120), row.offset, row.size, row.first, row.last]
            for row in rows[:MOST]
        ],
        "left_out": len(rows[MOST:]),
        "live": _live(plan),
        "steps": [[shown(step.op, 60), shown(step.origin, 120)] for step in program.instructions],
    }


def _live(plan: MemoryPlan) -> list[int]:
    """Return the bytes of the live buffers at each step, each size rounded up to the alignment."""
    steps = max(len(plan.program.instructions), 1)
    changes = [0] * (steps + 1)
    for storage in plan.assignment.arena:
        for first, last, size in storage.spans():
            changes[min(max(first, 0), steps)] += aligned(size, plan.alignment)
            changes[min(last + 1, steps)] -= aligned(size, plan.alignment)
    return list(accumulate(changes))[:steps]
