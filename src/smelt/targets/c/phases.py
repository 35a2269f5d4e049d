"""The schedule and allocate phases of the target ``c``, through the native engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from smelt.native import memory, schedule
from smelt.native.kernels.register_blocks import for_machine
from smelt.native.rewrite.fit_arena import fit
from smelt.native.sharing import SINGLE_THREADED
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.targets.base import Plan
from smelt.targets.c.options import Options

CPlan: TypeAlias = Plan[Program, MemoryPlan]


def order(plan: CPlan) -> None:
    """Set ``plan.steps`` to the Program of the model, in an order that needs little memory.

    Raises an ErrorList of all operators without a kernel.
    """
    how = plan.options.quantized
    with for_machine(plan.options.machine):
        plan.steps = schedule.ordered(
            plan.model, "c", integers=how != "floats", fixed_point=how == "fixed"
        )


def planner(options: Options) -> Callable[[Program], MemoryPlan]:
    """Return the function that plans the memory of a program as ``options`` say."""
    return partial(
        memory.allocate,
        alignment=options.arena_alignment,
        parts=options.threads,
        limit=options.arena,
    )


def allocate(plan: CPlan) -> None:
    """Set ``plan.memory`` to a plan of all buffers in one arena.

    The fact ``bound_bytes`` is a lower bound for any plan. The option ``arena`` adds further facts:
    ``bands`` and ``layers_in_bands`` of the plan; ``choices``, arena sizes with their cost in MACs
    if layers are computed in row bands; and with threads ``steps_in_one_part``, the number of steps
    that stay single-threaded for lack of scratch space.
    """
    options = plan.options
    planned = planner(options)
    if options.arena is None:
        with for_machine(options.machine):
            plan.memory = planned(plan.steps)
    else:
        with for_machine(options.machine):
            fitted = fit(plan.steps, options.arena, planned)
        plan.memory, plan.steps = fitted.plan, fitted.plan.program
        uncut = sum(SINGLE_THREADED in each.attributes for each in plan.steps.instructions)
        if options.threads > 1:
            plan.facts["steps_in_one_part"] = uncut
        plan.facts["bands"] = fitted.choice.bands
        plan.facts["layers_in_bands"] = fitted.choice.layers
        plan.facts["choices"] = [each.to_json() for each in fitted.choices]
    plan.facts["arena_bytes"] = plan.memory.arena_bytes
    plan.facts["bound_bytes"] = plan.memory.bound_bytes
    plan.facts["scratch_bytes"] = plan.memory.scratch_bytes
