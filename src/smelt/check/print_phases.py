"""Print the result of each phase of a target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from smelt.check.print_passes import ALL, first_lines
from smelt.errors import UsageError, did_you_mean
from smelt.ir.listing import listing
from smelt.program.instruction import Program
from smelt.program.listing import program_lines
from smelt.targets.base import Plan, Target
from smelt.targets.phase_observer import PHASES


def wanted_phases(text: str) -> frozenset[str]:
    """Return the phases that ``all`` or ``schedule,allocate`` names; raises UsageError E601."""
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in (ALL, *PHASES):
            raise UsageError(
                "E601",
                f"there is no phase {name!r}",
                why=f"phases are {', '.join(PHASES)}",
                fix=did_you_mean(name, PHASES, f"use one of {', '.join(PHASES)}"),
            )
    return frozenset(PHASES if ALL in names else names)


@dataclass
class PrintPhases:
    """A phase observer that passes text to ``write`` after each of ``phases``.

    It prints the graph after select, the instructions after schedule, the memory plan after
    allocate and the facts after emit; at most ``limit`` lines each, 0 is no limit.
    """

    write: Callable[[str], None]
    phases: frozenset[str]
    limit: int = 0

    def __call__(self, phase: str, target: Target[Any, Any], plan: Plan[Any, Any]) -> None:
        """Print the result of ``phase``."""
        if phase in self.phases:
            lines = list(_lines(phase, plan))
            self.write(f"*** {target.name}: after {phase} ***")
            self.write("\n".join(first_lines(lines, self.limit)))


def _lines(phase: str, plan: Plan[Any, Any]) -> Iterator[str]:
    """Yield the text of the result of ``phase``."""
    if phase == "select":
        yield from listing(plan.model).lines
    elif phase == "emit":
        yield from (f"{name}: {fact}" for name, fact in plan.facts.items())
    else:
        result = getattr(plan, "steps" if phase == "schedule" else "memory", None)
        yield from _text(result)


def _text(result: Any) -> Iterator[str]:
    """Yield the text of a Program, of a plan with ``to_text``, or of the items of a list."""
    if isinstance(result, Program):
        yield from program_lines(result)
    elif hasattr(result, "to_text"):
        yield from result.to_text().splitlines()
    elif isinstance(result, list | tuple):
        yield from map(str, result)
    elif result is not None:
        yield str(result)
