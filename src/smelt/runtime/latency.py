"""Compare latencies by interleaved timing in one process.

Models timed one after another see different machine states. Here every round runs each model once,
so a slow moment affects all of them, and the median ignores it.
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
"""Untimed runs of each candidate first: caches fill, plans are made, clock rates rise."""

CONFIDENCE = 0.95

SMALLEST_DIFFERENCE = 0.01
"""The smallest relative difference that counts; caches and clocks cause this much for one model."""


SHORTEST_RUN = 1e-9
"""The least seconds of a run: some clocks advance only every 16 ms and would measure 0."""


@dataclass(frozen=True)
class Timing:
    """The seconds of each run of one candidate, compared with the first candidate.

    ``spread`` is the interquartile range relative to the median. ``ratio`` is the median ratio to
    the first candidate's run in the same round; ``interval`` is its 95 % confidence interval for
    any distribution, None with too few rounds.
    """

    seconds: tuple[float, ...]
    minimum: float
    median: float
    spread: float
    ratio: float
    interval: tuple[float, float] | None

    @property
    def differs(self) -> bool | None:
        """True if the time differs from the first candidate's by more than noise, and by more than
        ``SMALLEST_DIFFERENCE``.

        None if there are too few rounds.
        """
        if self.interval is None:
            return None
        low, high = self.interval
        return high < 1 - SMALLEST_DIFFERENCE or low > 1 + SMALLEST_DIFFERENCE

    def to_json(self) -> dict[str, Any]:
        """Return the timing as JSON data."""
        return {
            "min": self.minimum,
            "median": self.median,
            "spread": self.spread,
            "ratio": self.ratio,
            "interval": self.interval,
            "differs": self.differs,
            "seconds": list(self.seconds),
        }


def interleaved_timings(
    runs: Sequence[Callable[[], object]],
    *,
    rounds: int = MOST_ROUNDS,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timing]:
    """Return the timings of ``runs``, interleaved, after a warm-up.

    Every other round runs in reversed order. ``clock`` may be ``time.process_time`` for
    single-threaded runs, so that other work on the machine does not count. Stops after ``rounds``
    rounds or ``seconds``, whichever comes first, but not before three rounds unless fewer are
    requested.
    """
    for run in runs:
        for _ in range(WARM_UP):
            run()
    times_by_run: list[list[float]] = [[] for _ in runs]
    pairs = list(zip(times_by_run, runs, strict=True))
    started = time.perf_counter()
    for round_number in range(rounds):
        if round_number >= FEWEST_ROUNDS and time.perf_counter() - started > seconds:
            break
        for times, run in pairs if round_number % 2 == 0 else reversed(pairs):
            begin = clock()
            run()
            times.append(max(clock() - begin, SHORTEST_RUN))
    return [_timing(times, times_by_run[0]) for times in times_by_run]


def _timing(times: Sequence[float], first: Sequence[float]) -> Timing:
    """Return the Timing of ``times`` relative to the times of the first candidate."""
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


def _interval(sorted_values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the median, from binomial order statistics.

    Each of ``n`` values is above the true median with probability 1/2, as a coin falls. So the
    median is outside of the sorted values ``rank`` to ``n - 1 - rank`` as often as ``n`` tosses
    give at most ``rank`` heads, or at most ``rank`` tails.
    Returns None if even the range of all values has a lower confidence.
    """
    count, tail = len(sorted_values), 0.0
    rank = -1
    while rank + 1 < count // 2:
        probability = math.comb(count, rank + 1) / 2**count
        if 2 * (tail + probability) > 1 - CONFIDENCE:
            break
        tail, rank = tail + probability, rank + 1
    return (sorted_values[rank], sorted_values[count - 1 - rank]) if rank >= 0 else None


def measure_latency(
    models: Sequence[Source],
    inputs: Sequence[Value],
    *,
    rounds: int = 20,
    seconds: float = 10.0,
) -> list[float]:
    """Return the median seconds of one run of each model on ``inputs``, as users run them.

    ONNX Runtime's graph optimizations are on. Stops after ``rounds`` rounds or ``seconds``,
    whichever comes first, but not before three rounds.
    """
    sessions = [OnnxRuntime(as_model(model), optimized=True) for model in models]

    def run(session: OnnxRuntime) -> Callable[[], object]:
        """Return a function that runs ``session`` once."""
        return lambda: session(*inputs)

    timings = interleaved_timings(
        [run(session) for session in sessions], rounds=rounds, seconds=seconds
    )
    return [timing.median for timing in timings]
