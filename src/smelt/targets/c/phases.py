"""The schedule and allocate phases: what the native engine plans, on the plan of this target."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from smelt.native import memory, schedule
from smelt.native.fit_arena import fit
from smelt.native.sharing import ALONE
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.targets.base import Plan

CPlan: TypeAlias = Plan[Program, MemoryPlan]


def order(plan: CPlan) -> None:
    """Lower to a program in the order that needs the least memory: sets ``plan.steps``.

    Raises an ErrorList of everything that has no kernel.
    """
    how = plan.options.quantized
    plan.steps = schedule.ordered(
        plan.model, "c", integers=how != "floats", fixed_point=how == "fixed"
    )


def allocate(plan: CPlan) -> None:
    """Lay all buffers out in one arena: sets ``plan.memory``.

    The fact ``bound_bytes`` is what no plan can beat. Where the option ``arena`` has a limit, the
    fact ``choices`` says which arena costs how many products, by bands of rows, and
    ``steps_in_one_part`` how many steps threads do not share for want of scratch space.
    """
    options = plan.options
    planned = partial(
        memory.allocate,
        alignment=options.arena_alignment,
        parts=options.threads,
        limit=options.arena,
    )
    if options.arena is None:
        plan.memory = planned(plan.steps)
    else:
        fitted = fit(plan.steps, options.arena, planned)
        plan.memory, plan.steps = fitted.plan, fitted.plan.program
        uncut = sum(ALONE in each.attributes for each in plan.steps.instructions)
        if options.threads > 1:
            plan.facts["steps_in_one_part"] = uncut
        plan.facts["bands"] = fitted.choice.bands
        plan.facts["layers_in_bands"] = fitted.choice.layers
        plan.facts["choices"] = [each.to_json() for each in fitted.choices]
    plan.facts["arena_bytes"] = plan.memory.arena_bytes
    plan.facts["bound_bytes"] = plan.memory.bound_bytes
    plan.facts["scratch_bytes"] = plan.memory.scratch_bytes
