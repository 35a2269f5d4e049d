"""The part of a stage that the loops inside of it read: intervals of indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from smelt.loops.algorithm import Stage, loads, reductions, substituted
from smelt.program.run_sizes import Dim, larger, smaller

Range: TypeAlias = tuple[Dim, Dim]
"""The first index and the end."""


def regions_of(
    result: Stage, stages: list[Stage], ranges: Mapping[str, Range]
) -> list[list[Range]]:
    """Return the part that each of the stages, which overwrite each other, must compute.

    ``ranges`` has the axes of the result whose loops are further inside.
    """
    name = stages[0].to.name
    regions = [_read(result, name, ranges, None)]
    for stage in reversed(stages[1:]):
        here = {axis.name: one for axis, one in zip(stage.axes, regions[0], strict=True)}
        regions.insert(0, _read(stage, name, here, regions[0]))
    return regions


def _read(
    stage: Stage, name: str, ranges: Mapping[str, Range], known: list[Range] | None
) -> list[Range]:
    """Return the indices at which a stage reads the buffer ``name``, and those in ``known``."""
    reduced = {each.name: (0, each.extent) for one in reductions(stage.value) for each in one.axes}
    ends = {**ranges, **reduced}
    first = {axis: low for axis, (low, _) in ends.items()}
    last = {axis: high - 1 for axis, (_, high) in ends.items()}
    for load in (load for load in loads(stage.value) if load.buffer.name == name):
        read = [(substituted(each, first), substituted(each, last) + 1) for each in load.index]
        known = (
            read
            if known is None
            else [(smaller(a, c), larger(b, d)) for (a, b), (c, d) in zip(known, read, strict=True)]
        )
    assert known is not None
    return known
