"""Who watches the phases of targets: to print what each made, or to check it.

As spans are, watchers are heard, not kept: whoever asks hears of every phase of every target that
compiles meanwhile, parts of a model included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from smelt.ir.verify import verify as verify_model
from smelt.program.instruction import Program
from smelt.program.layouts import verify_layouts
from smelt.program.memories import SpacesPlan
from smelt.program.memory import MemoryPlan
from smelt.program.verify import verify_memory, verify_program
from smelt.targets.base import Plan, Target

PHASES = ("select", "schedule", "allocate", "emit")

Watcher: TypeAlias = Callable[[str, Target[Any, Any], Plan[Any, Any]], None]
"""Hears of a phase that has ended, of the target, and of the plan as it is then."""

_WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers of phases", default=())


@contextmanager
def watching_phases(*watchers: Watcher) -> Iterator[None]:
    """Let ``watchers`` hear of each phase until the end."""
    token = _WATCHERS.set((*_WATCHERS.get(), *watchers))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


def ended(phase: str, target: Target[Any, Any], plan: Plan[Any, Any]) -> None:
    """Tell the watchers that ``phase`` has ended, the target's own steps after it included."""
    for watcher in _WATCHERS.get():
        watcher(phase, target, plan)


def verify_phase(phase: str, target: Target[Any, Any], plan: Plan[Any, Any]) -> None:
    """A watcher that checks what a phase made: the graph, a Program, a plan of memory.

    Raises an error of the code that names what is broken; steps and memories of a target's own
    making pass.
    """
    if phase == "select":
        verify_model(plan.model)
    steps, memory = getattr(plan, "steps", None), getattr(plan, "memory", None)
    if phase == "schedule" and isinstance(steps, Program):
        verify_program(steps)
        verify_layouts(steps, target.layouts)
    if phase == "allocate" and isinstance(memory, MemoryPlan | SpacesPlan):
        verify_program(memory.program)
        verify_layouts(memory.program, target.layouts)
        verify_memory(memory)
