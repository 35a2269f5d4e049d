"""An arena with a limit: first layers in bands of rows, as few as need be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass

from smelt.native.row_bands import candidates
from smelt.native.work import macs
from smelt.program.instruction import Program
from smelt.program.memories import Memory, too_small
from smelt.program.memory import MemoryPlan
from smelt.program.settle import largest


@dataclass(frozen=True)
class Choice:
    """So many first ``layers`` in so many ``bands``: bytes of arena, products in all."""

    layers: int
    bands: int
    arena_bytes: int
    macs: int

    def to_json(self) -> dict[str, int]:
        """The choice with its field names."""
        return asdict(self)


@dataclass(frozen=True)
class Fitted:
    """A program that fits, its plan, what was chosen, and what memory others would cost time."""

    program: Program
    plan: MemoryPlan
    choice: Choice
    choices: tuple[Choice, ...]


def fit(program: Program, budget: int, planned: Callable[[Program], MemoryPlan]) -> Fitted:
    """``program`` with an arena of at most ``budget`` bytes, by as little extra work as can be.

    ``planned`` lays a program out. Raises Unsupported E405 where no choice is small enough.
    """
    plan = planned(program)
    whole = Choice(0, 1, plan.arena_bytes, _work(program))
    if plan.arena_bytes <= budget:
        return Fitted(program, plan, whole, (whole,))
    found = [(whole, program, plan)]
    for layers, bands, banded in candidates(program):
        plan = planned(banded)
        choice = Choice(layers, bands, plan.arena_bytes, _work(banded))
        found.append((choice, banded, plan))
    choices = tuple(_best(each for each, _, _ in found))
    fitting = [each for each in choices if each.arena_bytes <= budget]
    if not fitting:
        least = choices[-1]
        plan = next(plan for choice, _, plan in found if choice == least)
        arena = Memory("arena", budget, plan.alignment)
        error = too_small(arena, plan.program, plan.assignment.arena, plan.arena_bytes)
        error.why = f"it takes {whole.arena_bytes} bytes" + (
            f", and {least.arena_bytes} with its first {least.layers} layers in {least.bands} bands"
            if least.layers
            else ", and there are no first layers that bands of rows would make smaller"
        )
        error.fix = "give it more, or make the input smaller"
        raise error
    chosen = fitting[0]
    _, banded, plan = next(each for each in found if each[0] == chosen)
    return Fitted(banded, plan, chosen, choices)


def _best(choices: Iterable[Choice]) -> Iterator[Choice]:
    """Those that need less memory than any of less work, by work."""
    least: int | None = None
    for each in sorted(choices, key=lambda each: (each.macs, each.arena_bytes, each.bands)):
        if least is None or each.arena_bytes < least:
            least = each.arena_bytes
            yield each


def _work(program: Program) -> int:
    """Products in all, those of the largest run where sizes are open."""
    known = largest(program)
    return sum(macs(known, each) for each in known.instructions)
