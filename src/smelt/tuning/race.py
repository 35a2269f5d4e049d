"""Race sessions: by turns in one process, opened anew several times, on the same inputs."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from smelt.runtime.latency import take_turns
from smelt.runtime.session import Session

Open = Callable[[], Session]
Clock = Callable[[], float]
REBUILT = 3
"""Sessions are opened so often: where memory comes to lie makes one session slower than another."""


@dataclass(frozen=True)
class Standing:
    """How one of a race compares with its first: ``ratio`` of times, ``low`` and ``high`` that of
    the sessions where it stood best and worst; ``creation`` is the ratio of opening times."""

    ratio: float
    low: float
    high: float
    creation: float

    def to_json(self) -> dict[str, float]:
        return {name: round(value, 4) for name, value in vars(self).items()}


def race(
    opens: Sequence[Open],
    feeds: Mapping[str, Any],
    seconds: float,
    threads: int,
    clocks: tuple[Clock, Clock] = (time.process_time, time.perf_counter),
) -> list[Standing]:
    """Each of ``opens`` against the first, in ``seconds`` or a little more.

    Of one thread it is the time of the processor that counts, so that other work does not; of
    several, and by the second of ``clocks``, that of the day. Opening is timed by the first.
    """
    clock = clocks[0] if threads == 1 else clocks[1]
    ratios: list[list[float]] = [[] for _ in opens]
    opened: list[list[float]] = [[] for _ in opens]
    for turn in range(REBUILT):
        runs: dict[int, Callable[[], object]] = {}
        for place in np.random.default_rng(turn).permutation(len(opens)).tolist():
            begin = clocks[0]()
            session = opens[place]()
            opened[place].append(clocks[0]() - begin)
            runs[place] = partial(session.run, None, feeds)
        ordered = [runs[place] for place in range(len(opens))]
        timings = take_turns(ordered, seconds=seconds / REBUILT, clock=clock)
        for place, timing in enumerate(timings):
            least = timing.minimum / timings[0].minimum
            ratios[place].append(math.sqrt(timing.ratio * least))
    creation = [min(taken) / min(opened[0]) for taken in opened]
    return [
        Standing(statistics.median(found), min(found), max(found), created)
        for found, created in zip(ratios, creation, strict=True)
    ]
