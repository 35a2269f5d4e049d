"""The schedule and allocate phases of the target ``wasm``, through the native engine."""

from __future__ import annotations

from typing import TypeAlias

from smelt.errors import ResourceLimit
from smelt.native import memory, schedule
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.targets.base import Plan

WasmPlan: TypeAlias = Plan[Program, MemoryPlan]

ADDRESSES = 1 << 32
"""The bytes that a 32-bit WebAssembly module can address."""

ROOM = 1 << 20
"""The bytes of the address space that are reserved for the stack and for tables."""


def order(plan: WasmPlan) -> None:
    """Lower to a Program in the order that needs the least memory; sets ``plan.steps``.

    Raises an ErrorList of everything without a kernel.
    """
    how = plan.options.quantized
    plan.steps = schedule.ordered(
        plan.model, "wasm", integers=how != "floats", fixed_point=how == "fixed"
    )


def allocate(plan: WasmPlan) -> None:
    """Place all buffers in one arena; sets ``plan.memory``.

    Raises ResourceLimit E562 if weights, arena, inputs and outputs exceed the address space.
    """
    plan.memory = memory.allocate(plan.steps)
    program = plan.steps
    plan.facts["arena_bytes"] = plan.memory.arena_bytes
    plan.facts["bound_bytes"] = plan.memory.bound_bytes
    plan.facts["scratch_bytes"] = plan.memory.scratch_bytes
    ports = sum(program.slots[slot].most_bytes for slot in (*program.inputs, *program.outputs))
    weights = sum(array.nbytes for array in program.constants.values())
    needed = plan.memory.arena_bytes + ports + weights
    if needed > ADDRESSES - ROOM:
        raise ResourceLimit(
            "E562",
            f"the model needs {needed:,} bytes of memory in WebAssembly",
            at=f"weights {weights:,}, arena {plan.memory.arena_bytes:,}, inputs and outputs "
            f"{ports:,} bytes",
            why=f"the memory of a module has at most {ADDRESSES:,} bytes",
            fix="bound sizes more tightly with --dim, or store weights in fewer bits",
        )
