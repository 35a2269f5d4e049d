"""Observers of the phases of targets, which print or check the result of each phase.

Observers apply to every phase of every target that compiles inside a block, including parts of a
model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from smelt.ir.verify import verify as verify_model
from smelt.program.chips.layouts import verify_layouts
from smelt.program.chips.memories import SpacesPlan
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.program.verify import verify_memory, verify_program
from smelt.targets.base import Plan, Target

PHASES = ("select", "schedule", "allocate", "emit")

PhaseObserver: TypeAlias = Callable[[str, Target[Any, Any], Plan[Any, Any]], None]
"""Is called with the phase that has ended, the target, and the current plan."""

_OBSERVERS: ContextVar[tuple[PhaseObserver, ...]] = ContextVar("observers of phases", default=())


@contextmanager
def observe_phases(*observers: PhaseObserver) -> Iterator[None]:
    """Call ``observers`` after each phase inside the block."""
    token = _OBSERVERS.set((*_OBSERVERS.get(), *observers))
    try:
        yield
    finally:
        _OBSERVERS.reset(token)


def notify(phase: str, target: Target[Any, Any], plan: Plan[Any, Any]) -> None:
    """Call the observers after ``phase``, including the target's own steps after it."""
    for observer in _OBSERVERS.get():
        observer(phase, target, plan)


def verify_phase(phase: str, target: Target[Any, Any], plan: Plan[Any, Any]) -> None:
    """Check the result of a phase: the graph, a Program, or a memory plan.

    Raises the error that names the defect. A target's own kinds of steps and memory are not
    checked.
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
