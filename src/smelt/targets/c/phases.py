"""The schedule and allocate phases: what the native engine plans, on the plan of this target."""

from __future__ import annotations

from typing import TypeAlias

from smelt.native import memory, schedule
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.targets.base import Plan

CPlan: TypeAlias = Plan[Program, MemoryPlan]


def order(plan: CPlan) -> None:
    """Lower to a program in the order that needs the least memory: sets ``plan.steps``.

    Raises an ErrorList of everything that has no kernel.
    """
    plan.steps = schedule.ordered(plan.model, "c")


def allocate(plan: CPlan) -> None:
    """Lay all buffers out in one arena: sets ``plan.memory``.

    The fact ``bound_bytes`` is what no plan can beat.
    """
    plan.memory = memory.allocate(plan.steps, plan.options.arena_alignment, plan.options.threads)
    plan.facts["arena_bytes"] = plan.memory.arena_bytes
    plan.facts["bound_bytes"] = plan.memory.bound_bytes
    plan.facts["scratch_bytes"] = plan.memory.scratch_bytes
