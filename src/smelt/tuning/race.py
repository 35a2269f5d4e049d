"""Time sessions of ONNX Runtime against each other: interleaved, and reopened several times."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from smelt.errors import SmeltError, Unsupported
from smelt.runtime.interface import Interface
from smelt.runtime.latency import SHORTEST_RUN, interleaved_timings
from smelt.runtime.onnxruntime import load_error, run_error
from smelt.runtime.session import Session
from smelt.runtime.values import is_native, to_ort

Open = Callable[[], Session]
Clock = Callable[[], float]
SESSIONS = 3
"""How many sessions each candidate opens, because the placement of memory affects their speed."""


@dataclass(frozen=True)
class Comparison:
    """The comparison of a candidate with the first one.

    ``ratio``: the candidate's time over that of the first. ``low`` and ``high``: the best and the
    worst ratio over reopened sessions. ``creation``: the ratio of the times to open a session.
    """

    ratio: float
    low: float
    high: float
    creation: float

    def to_json(self) -> dict[str, float]:
        """Return the ratios by field name, rounded to four decimals."""
        return {name: round(value, 4) for name, value in vars(self).items()}


def race(
    opens: Sequence[Open],
    feeds: Mapping[str, Any],
    seconds: float,
    threads: int,
    clocks: tuple[Clock, Clock] = (time.process_time, time.perf_counter),
) -> list[Comparison]:
    """Compare each of ``opens`` with the first, in about ``seconds``.

    ``clocks`` measure CPU time and wall time. Runs with one thread are timed in CPU time, so that
    other processes do not count, and runs with several in wall time. Opening is timed in CPU time.
    Raises Unsupported E220, InvalidModel E320 or E321, or ResourceLimit E510 if a candidate fails.
    """
    clock = clocks[0] if threads == 1 else clocks[1]
    ratios: list[list[float]] = [[] for _ in opens]
    opened: list[list[float]] = [[] for _ in opens]
    for session_number in range(SESSIONS):
        runs: dict[int, Callable[[], object]] = {}
        for candidate in np.random.default_rng(session_number).permutation(len(opens)).tolist():
            begin = clocks[0]()
            session = opened_session(opens[candidate])
            opened[candidate].append(max(clocks[0]() - begin, SHORTEST_RUN))
            run_once(session, feeds)
            runs[candidate] = _run_of(session, feeds)
        ordered = [runs[candidate] for candidate in range(len(opens))]
        timings = interleaved_timings(ordered, seconds=seconds / SESSIONS, clock=clock)
        for candidate, timing in enumerate(timings):
            # the geometric mean of both ratios: of the medians, and of the shortest runs
            ratio_of_shortest = timing.minimum / timings[0].minimum
            ratios[candidate].append(math.sqrt(timing.ratio * ratio_of_shortest))
    creation = [min(open_seconds) / min(opened[0]) for open_seconds in opened]
    return [
        Comparison(
            statistics.median(ratios_of_candidate),
            min(ratios_of_candidate),
            max(ratios_of_candidate),
            creation_ratio,
        )
        for ratios_of_candidate, creation_ratio in zip(ratios, creation, strict=True)
    ]


def opened_session(open_session: Open) -> Session:
    """Call ``open_session``; raises Unsupported E220, InvalidModel E320 or ResourceLimit E510."""
    try:
        return open_session()
    except (SmeltError, MemoryError):
        raise
    except Exception as error:  # ONNX Runtime raises a type for each status
        raise load_error(str(error)) from error


def as_session_inputs(interface: Interface, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` in the form that sessions take: arrays, or OrtValues.

    OrtValues are used if NumPy lacks an element type; they share the memory of the arrays, which
    must outlive them. Raises Unsupported E220 for sequences together with such a type.
    """
    ports = (*interface.inputs, *interface.outputs)
    if all(is_native(port.dtype) for port in ports):
        return dict(values)
    types = {port.name: port.dtype for port in interface.inputs}
    if any(port.kind != "tensor" for port in ports):
        raise Unsupported(
            "E220",
            "a model with both sequences and an element type that NumPy lacks is not timed",
            why="ONNX Runtime has one call for sequences and another for such types, and none "
            "for both",
            fix="make the inputs tensors, or of element types that NumPy has",
        )
    return {n: to_ort(v, dtype) for n, v in values.items() if (dtype := types[n]) is not None}


def _run_of(session: Session, feeds: Mapping[str, Any]) -> Callable[[], object]:
    """Return a function that runs the session once; OrtValue inputs give OrtValue outputs."""
    if any(hasattr(value, "element_type") for value in feeds.values()):
        names = [output.name for output in session.get_outputs()]
        return partial(session.run_with_ort_values, names, dict(feeds))
    return partial(session.run, None, dict(feeds))


def run_once(session: Session, feeds: Mapping[str, Any]) -> None:
    """Run once; raises Unsupported E220, InvalidModel E321 or ResourceLimit E510 on failure."""
    try:
        _run_of(session, feeds)()
    except MemoryError:
        raise
    except Exception as error:
        raise run_error(str(error)) from error
