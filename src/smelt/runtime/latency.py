"""Compare the latency of models fairly: in one process, one thread, taking turns.

Two models measured one after the other see different machines; here every round runs each model
once, so a slow moment slows all of them, and the median forgets it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from smelt.runtime.interface import Value
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.runner import Source, as_model


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
    for session in sessions:
        session(*inputs)
    taken: list[list[float]] = [[] for _ in sessions]
    started = time.perf_counter()
    for done in range(rounds):
        if done >= 3 and time.perf_counter() - started > seconds:
            break
        for times, session in zip(taken, sessions, strict=True):
            begin = time.perf_counter()
            session(*inputs)
            times.append(time.perf_counter() - begin)
    return [statistics.median(times) for times in taken]
