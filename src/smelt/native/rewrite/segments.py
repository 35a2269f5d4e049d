"""Find layers around the memory peak of a program that may be computed in bands.

Any consecutive instructions qualify whose results can be cut: the first layers of an image network,
a stage of a U-Net whose result is read again later, signals, or the feed-forward part and the
scores of a transformer by rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from smelt.native.rewrite.band_regions import BAND_REGIONS
from smelt.native.rewrite.bands import in_bands
from smelt.program.instruction import Instruction, Program
from smelt.program.memory import MemoryPlan, aligned, live_from

BANDS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
"""The numbers of bands to try, as far as there are rows."""

MOST_LAYERS = 12
"""The most layers on either side of the memory peak."""


@dataclass(frozen=True)
class Segment:
    """Instructions ``first`` to ``stop``, and the ``program`` that computes them in ``bands``
    bands.
    """

    first: int
    stop: int
    bands: int
    program: Program

    @property
    def layers(self) -> int:
        """The number of layers that are cut."""
        return self.stop - self.first

    def peak(self, plan: MemoryPlan, before: Program) -> int:
        """Return the largest number of live bytes while the bands are computed.

        ``before`` is the program that was cut, ``plan`` the plan of the banded program. The bands
        stand between the ``first`` instructions and those that follow ``stop``.
        """
        following = len(before.instructions) - self.stop
        live = live_bytes(plan)
        return max(live[self.first : len(live) - following])


def live_bytes(plan: MemoryPlan) -> list[int]:
    """Return the live bytes at each instruction."""
    live, changes = 0, live_from(plan.assignment.arena, plan.alignment)
    live_at = []
    for step in range(len(plan.program.instructions)):
        live = changes.get(step, live)
        live_at.append(live)
    return live_at


def segments(plan: MemoryPlan, budget: int) -> Iterator[Segment]:
    """Yield the layers around the memory peak, computed in a growing number of bands.

    Layers are skipped if other tensors alone, live around the layers, exceed ``budget`` bytes.
    """
    program = plan.program
    live = live_bytes(plan)
    peak = live.index(max(live))
    low = high = peak
    while low > 0 and peak - low < MOST_LAYERS and _is_layer(program, low - 1):
        low -= 1
    while high < len(live) and high - peak < MOST_LAYERS and _is_layer(program, high):
        high += 1
    for layers in range(1, high - low + 1):
        for first in range(max(low, peak - layers + 1), min(peak, high - layers) + 1):
            yield from _banded_choices(plan, first, first + layers, budget)


def _banded_choices(plan: MemoryPlan, first: int, stop: int, budget: int) -> Iterator[Segment]:
    """Yield instructions ``first`` to ``stop`` in each possible number of bands, by axis."""
    program = plan.program
    layers = program.instructions[first:stop]
    returned = _results_read_later(program, layers, stop)
    result = layers[-1].outputs[0]
    if result not in returned or _bytes_live_around(plan, first, stop) > budget:
        return
    others = [slot for slot in returned if slot != result]
    sizes = program.slots[result].sizes
    for axis in _axes(sizes):
        for count in (each for each in BANDS if each <= sizes[axis]):
            size = ceil(sizes[axis] / count)
            banded = in_bands(program, layers, size, axis, BAND_REGIONS, others)
            if banded is None:
                break
            yield Segment(first, stop, ceil(sizes[axis] / size), banded)


def _axes(sizes: Sequence[int]) -> list[int]:
    """Return the axes that may be cut: rows of images or signals, both axes of matrices."""
    rank = len(sizes)
    if rank >= 4:
        candidates: tuple[int, ...] = (2,)
    else:
        candidates = (rank - 2, rank - 1) if rank > 1 else (0,)
    return [axis for axis in candidates if 0 <= axis < rank and sizes[axis] > 1]


def _results_read_later(program: Program, layers: Sequence[Instruction], stop: int) -> list[int]:
    """Return the results of ``layers`` that later instructions read or the program returns."""
    read_later = {slot for each in program.instructions[stop:] for slot in each.inputs}
    read_later |= set(program.outputs)
    return [each.outputs[0] for each in layers if each.outputs[0] in read_later]


def _bytes_live_around(plan: MemoryPlan, first: int, stop: int) -> int:
    """Return the bytes of the tensors that are live before and in the layers, or in them and after.

    No number of bands makes these smaller. A storage counts with its smallest tensor.
    """
    total = 0
    for storage in plan.assignment.arena:
        spans = list(storage.spans())
        if any(begin < first and end >= first for begin, end, _ in spans) or any(
            begin < stop <= end for begin, end, _ in spans
        ):
            total += aligned(min(size for _, _, size in spans), plan.alignment)
    return total


def _is_layer(program: Program, index: int) -> bool:
    """True if an instruction has one result of known sizes and can be cut."""
    instruction = program.instructions[index]
    if len(instruction.outputs) != 1 or instruction.bodies or instruction.parts:
        return False
    if instruction.op not in BAND_REGIONS:
        return False
    slots = [s for s in (*instruction.inputs, *instruction.outputs) if s >= 0]
    return all(
        isinstance(dim, int) and dim > 0 for slot in slots for dim in program.slots[slot].shape
    )
