"""Fit the arena into a limit by computing layers in bands.

The first layers of the network are tried first, with as little recomputation as possible, then
layers around every peak of live memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice

from smelt.errors import Unsupported
from smelt.native.rewrite.row_bands import candidates
from smelt.native.rewrite.segments import Segment, live_bytes, segments
from smelt.native.work import macs
from smelt.program.chips.memories import Memory, too_small
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan
from smelt.program.resolve_sizes import with_largest_sizes

MOST_PEAKS, MOST_TRIED = 16, 80
"""The most memory peaks that are cut one after the other, and the most segments tried at each."""

SHARES = (1, 0.75)
"""Shares of the limit to which peaks are cut; the lower one is tried if the first fails."""


@dataclass(frozen=True)
class Choice:
    """One way to compute the program: ``layers`` layers in ``bands`` bands, and what this costs.

    ``arena_bytes`` is the arena size, ``macs`` the multiply-adds.
    """

    layers: int
    bands: int
    arena_bytes: int
    macs: int

    def to_json(self) -> dict[str, int]:
        """Return the choice with its field names."""
        return asdict(self)


@dataclass(frozen=True)
class Fitted:
    """A program that fits, its memory plan, its choice, and the best choices for other limits."""

    program: Program
    plan: MemoryPlan
    choice: Choice
    choices: tuple[Choice, ...]


def fit(program: Program, budget: int, planned: Callable[[Program], MemoryPlan]) -> Fitted:
    """Return ``program`` with an arena of at most ``budget`` bytes and the least extra work.

    ``planned`` returns the memory plan of a program. Raises Unsupported E405 if no choice fits.
    """
    plan = planned(program)
    unbanded = Choice(0, 1, plan.arena_bytes, _work(program))
    if plan.arena_bytes <= budget:
        return Fitted(program, plan, unbanded, (unbanded,))
    variants = [(unbanded, program, plan)]
    for layers, bands, banded in candidates(program):
        plan = planned(banded)
        choice = Choice(layers, bands, plan.arena_bytes, _work(banded))
        variants.append((choice, banded, plan))
    choices = tuple(_pareto_front(each for each, _, _ in variants))
    fitting = [each for each in choices if each.arena_bytes <= budget]
    if not fitting:
        for share in SHARES:
            variants.append(_cut_peaks(program, int(share * budget), planned))
            if variants[-1][0].arena_bytes <= budget:
                break
        choices = tuple(_pareto_front(each for each, _, _ in variants))
        fitting = [each for each in choices if each.arena_bytes <= budget]
    if not fitting:
        least = min(choices, key=lambda each: each.arena_bytes)
        plan = next(plan for choice, _, plan in variants if choice == least)
        raise _too_small(budget, plan, unbanded, least)
    chosen = fitting[0]
    _, banded, plan = next(each for each in variants if each[0] == chosen)
    return Fitted(banded, plan, chosen, choices)


def _too_small(budget: int, plan: MemoryPlan, unbanded: Choice, least: Choice) -> Unsupported:
    """Return the error that says how much memory the model needs without and with bands.

    ``plan`` is the plan of the choice ``least``, which has the smallest arena.
    """
    arena = Memory("arena", budget, plan.alignment)
    error = too_small(arena, plan.program, plan.assignment.arena, plan.arena_bytes)
    error.why = f"the model needs {unbanded.arena_bytes} bytes" + (
        f", and {least.arena_bytes} with {least.layers} layers in {least.bands} bands"
        if least.layers
        else ", and no layers need less memory in row bands"
    )
    error.fix = "allow a larger arena, or make the input smaller"
    return error


def _cut_peaks(
    program: Program, budget: int, planned: Callable[[Program], MemoryPlan]
) -> tuple[Choice, Program, MemoryPlan]:
    """Compute layers around one memory peak after the other in bands, until ``budget`` suffices.

    Returns the choice, the program and the plan with the smallest arena found.
    """
    plan = planned(program)
    layers, bands, best = 0, 1, (plan, program)
    for _ in range(MOST_PEAKS):
        if plan.arena_bytes <= budget:
            break
        segment = _least_work(plan, budget, planned)
        if segment is None:
            break
        program = segment.program
        plan = planned(program)
        layers, bands = layers + segment.layers, max(bands, segment.bands)
        if plan.arena_bytes <= best[0].arena_bytes:
            best = plan, program
    plan, program = best
    return Choice(layers, bands, plan.arena_bytes, _work(program)), program, plan


def _least_work(
    plan: MemoryPlan, budget: int, planned: Callable[[Program], MemoryPlan]
) -> Segment | None:
    """Return the banded layers around the memory peak that fit ``budget`` with the least work.

    If no segment fits, return the segment with the lowest peak. None if no segment lowers the peak.
    """
    best: tuple[tuple[bool, int, int, int], Segment] | None = None
    for segment in islice(segments(plan, budget), MOST_TRIED):
        peak = segment.peak(planned(segment.program), plan.program)
        work = _work(segment.program)
        # Segments that fit come first, by their work; the others follow, by their peak.
        fits = peak <= budget
        key = (False, work, segment.bands, peak) if fits else (True, peak, work, 0)
        if best is None or key < best[0]:
            best = key, segment
    if best is None:
        return None
    (exceeds_budget, work_or_peak, *_), segment = best
    if exceeds_budget and work_or_peak >= max(live_bytes(plan)):
        return None
    return segment


def _pareto_front(choices: Iterable[Choice]) -> Iterator[Choice]:
    """Yield the choices with a smaller arena than every choice of less work, in order of work."""
    least: int | None = None
    for each in sorted(choices, key=lambda each: (each.macs, each.arena_bytes, each.bands)):
        if least is None or each.arena_bytes < least:
            least = each.arena_bytes
            yield each


def _work(program: Program) -> int:
    """Return the multiply-adds of a program, for the largest sizes if sizes are open."""
    known = with_largest_sizes(program)
    return sum(macs(known, each) for each in known.instructions)
