"""Compare latencies fairly: in one process, taking turns.

Two models measured one after the other see different machines; here every round runs each model
once, so a slow moment slows all of them, and the median forgets it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from smelt.runtime.interface import Value
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.runner import Source, as_model

FEWEST_ROUNDS = 3
MOST_ROUNDS = 10_000
WARM_UP = 2
"""Runs of each before the first that counts: caches fill, plans are made, clocks go up."""

CONFIDENCE = 0.95

SMALLEST = 0.01
"""A difference that is called one: caches and clocks move the same model by as much."""


SHORTEST = 1e-9
"""Seconds of a run that is over before the clock moves: some clocks move every 16 ms."""


@dataclass(frozen=True)
class Timing:
    """Seconds of each run of one of several that took turns, and how it compares with the first.

    ``spread`` is the middle half of the runs, as a part of the median. ``ratio`` is the median of
    the ratios to the run of the first in the same round, ``interval`` where the true median is
    with 95 % confidence, whatever the distribution; None with too few rounds to say.
    """

    seconds: tuple[float, ...]
    minimum: float
    median: float
    spread: float
    ratio: float
    interval: tuple[float, float] | None

    @property
    def differs(self) -> bool | None:
        """True if it is faster or slower than the first, beyond noise and by more than
        ``SMALLEST``; None if nobody can say."""
        if self.interval is None:
            return None
        return self.interval[1] < 1 - SMALLEST or self.interval[0] > 1 + SMALLEST

    def to_json(self) -> dict[str, Any]:
        return {
            "min": self.minimum,
            "median": self.median,
            "spread": self.spread,
            "ratio": self.ratio,
            "interval": self.interval,
            "differs": self.differs,
            "seconds": list(self.seconds),
        }


def take_turns(
    runs: Sequence[Callable[[], object]],
    *,
    rounds: int = MOST_ROUNDS,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:
    """Time ``runs`` by turns, the order reversed in every other round, after a warm-up.

    ``clock`` may be ``time.process_time`` for what takes one thread: other work on the machine
    does not count then.

    Stops after ``rounds`` rounds or ``seconds``, whichever comes first, but not before three
    rounds unless fewer are asked for.
    """
    for run in runs:
        for _ in range(WARM_UP):
            run()
    taken: list[list[float]] = [[] for _ in runs]
    pairs = list(zip(taken, runs, strict=True))
    started = time.perf_counter()
    for done in range(rounds):
        if done >= FEWEST_ROUNDS and time.perf_counter() - started > seconds:
            break
        for times, run in pairs if done % 2 == 0 else reversed(pairs):
            begin = clock()
            run()
            times.append(max(clock() - begin, SHORTEST))
    return [_timing(times, taken[0]) for times in taken]


def _timing(times: Sequence[float], first: Sequence[float]) -> Timing:
    median = statistics.median(times)
    low, _, high = statistics.quantiles(times, n=4) if len(times) > 1 else (median,) * 3
    ratios = sorted(a / b for a, b in zip(times, first, strict=True))
    return Timing(
        tuple(times),
        min(times),
        median,
        (high - low) / median,
        statistics.median(ratios),
        _interval(ratios),
    )


def _interval(ordered: Sequence[float]) -> tuple[float, float] | None:
    """Where the median is: between the order statistics that a binomial leaves out in 5 %."""
    count, tail = len(ordered), 0.0
    rank = -1
    while rank + 1 < count // 2:
        weight = math.comb(count, rank + 1) / 2**count
        if 2 * (tail + weight) > 1 - CONFIDENCE:
            break
        tail, rank = tail + weight, rank + 1
    return (ordered[rank], ordered[count - 1 - rank]) if rank >= 0 else None


def measure_latency(
    models: Sequence[Source],
    inputs: Sequence[Value],
    *,
    rounds: int = 20,
    seconds: float = 10.0,
) -> list[float]:
    """The median seconds of one run of each model on ``inputs``, as users run them.

    Graph optimizations of ONNX Runtime are on. Stops after ``rounds`` rounds or ``seconds``,
    whichever comes first, but not before three rounds.
    """
    sessions = [OnnxRuntime(as_model(model), optimized=True) for model in models]

    def run(session: OnnxRuntime) -> Callable[[], object]:
        return lambda: session(*inputs)

    timings = take_turns([run(session) for session in sessions], rounds=rounds, seconds=seconds)
    return [timing.median for timing in timings]
