"""The part of each stage that one iteration of the loops around it needs: intervals of indices."""

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
    """Return, for each of ``stages``, the part of their common buffer that it must compute.

    Each stage reads the elements that the stage before it wrote, and overwrites them. ``ranges``
    are the ranges of those axes of the result whose loops are further inside.
    """
    name = stages[0].to.name
    if not any(load.buffer.name == name for load in loads(result.value)):
        # Stages after this one read it at the result's indices.
        return [[ranges.get(each.name, (each.at, each.at + 1)) for each in stages[0].axes]]
    regions = [_covering(result, name, ranges, None)]
    for stage in reversed(stages[1:]):
        here = {axis.name: one for axis, one in zip(stage.axes, regions[0], strict=True)}
        regions.insert(0, _covering(stage, name, here, regions[0]))
    return regions


def _covering(
    stage: Stage, name: str, ranges: Mapping[str, Range], region: list[Range] | None
) -> list[Range]:
    """Return a region that covers ``region`` and all reads of the buffer ``name``.

    A region is one range per dim. The reads are those of ``stage`` with its axes in ``ranges``.
    """
    reduced = {
        each.name: (0, each.extent)
        for reduction in reductions(stage.value)
        for each in reduction.axes
    }
    ends = {**ranges, **reduced}
    first = {axis: low for axis, (low, _) in ends.items()}
    last = {axis: high - 1 for axis, (_, high) in ends.items()}
    for load in (load for load in loads(stage.value) if load.buffer.name == name):
        read = [(substituted(each, first), substituted(each, last) + 1) for each in load.index]
        if region is not None:
            ranges_of_dims = zip(region, read, strict=True)
            read = [
                (smaller(known_first, read_first), larger(known_end, read_end))
                for (known_first, known_end), (read_first, read_end) in ranges_of_dims
            ]
        region = read
    assert region is not None
    return region
