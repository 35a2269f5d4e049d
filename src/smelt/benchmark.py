"""Time several candidates interleaved on the same inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from smelt.candidate import Candidate, Run
from smelt.check.agreement import fixed_sizes
from smelt.errors import UsageError
from smelt.runtime.fitting_sizes import run_fitting
from smelt.runtime.interface import Interface, Value
from smelt.runtime.latency import Timing, interleaved_timings
from smelt.runtime.named_inputs import Chosen, Given, choose_inputs, input_types_text
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.runner import at_full_speed


@dataclass(frozen=True)
class Benchmark:
    """The timing of each candidate, in order, and the sizes of the symbolic dims."""

    names: tuple[str, ...]
    timings: tuple[Timing, ...]
    sizes: Mapping[str, int]


def benchmark(
    candidates: Sequence[Candidate],
    given: Given,
    sizes: Mapping[str, int],
    *,
    rounds: int,
    seconds: float,
    say: Callable[[str], None] = lambda text: None,
) -> Benchmark:
    """Time ``candidates`` in turn, round by round, on the same inputs.

    ``given`` holds inputs by name; the others are random. ``sizes`` are the sizes of symbolic dims;
    a dim that one candidate fixes has that size for all. Raises UsageError E632 if a candidate
    takes other inputs than the first, and any error of opening a candidate or of its first run.
    """
    chosen = _inputs(candidates, given, sizes)
    runs: list[Callable[[], object]] = []
    for candidate in candidates:
        say(f"opening {candidate.name}")
        values, own_sizes = chosen.values, chosen.sizes
        if candidate.interface is not None:
            fit = _for(candidate, candidate.interface, chosen)
            values, own_sizes = fit.values, fit.sizes
        run = candidate.open(own_sizes)
        at_full_speed(run)(*values)
        if isinstance(run, OnnxRuntime):
            run.time_limit = math.inf  # the model has finished once, and a watchdog costs time
        runs.append(_bound(run, values))
    say("measuring")
    timings = interleaved_timings(runs, rounds=rounds, seconds=seconds)
    return Benchmark(tuple(c.name for c in candidates), tuple(timings), chosen.sizes)


def _bound(run: Run, values: Sequence[Value]) -> Callable[[], object]:
    """Return ``run`` with ``values`` as its arguments; a lambda in a loop would share them."""
    return lambda: run(*values)


def _inputs(candidates: Sequence[Candidate], given: Given, sizes: Mapping[str, int]) -> Chosen:
    """Return inputs for the first candidate that declares its interface.

    If a symbolic dim has no size, sizes are tried until the candidate runs with them. Candidates
    without interfaces get the ``given`` arrays in order.
    """
    with_interface = [each for each in candidates if each.interface is not None]
    if not with_interface:
        return Chosen([v for v in given.values() if isinstance(v, np.ndarray)], {}, {})
    first = with_interface[0]
    assert first.interface is not None
    fixed: dict[str, int] = {}
    for other in with_interface[1:]:
        assert other.interface is not None
        fixed |= fixed_sizes(first.interface, other.interface)
    interface = first.interface

    def choose(at: Mapping[str, int]) -> Chosen:
        return choose_inputs(interface, given, first.make_inputs, at)

    if {*interface.symbols()} <= {*fixed, *sizes}:
        return choose({**fixed, **sizes})

    def attempt(chosen: Chosen) -> None:
        at_full_speed(first.open(chosen.sizes))(*chosen.values)

    return run_fitting(interface, choose, {**fixed, **sizes}, attempt, first.model)[1]


def _for(candidate: Candidate, interface: Interface, chosen: Chosen) -> Chosen:
    """Return the values of ``chosen``, after checking that they fit ``interface`` by position.

    ``interface`` is that of ``candidate``, whose inputs may have other names than the first one's.
    """
    if len(interface.inputs) != len(chosen.values):
        raise UsageError(
            "E632",
            f"{candidate.name} does not take the inputs of the first",
            why=f"it takes {input_types_text(interface)}; "
            f"{len(chosen.values)} are given to the first",
            fix="compare models with the same inputs; `smelt diff` shows the difference",
        )
    pairs = zip(interface.inputs, chosen.values, strict=True)
    arrays = {port.name: value for port, value in pairs if isinstance(value, np.ndarray)}
    fit = choose_inputs(interface, arrays, lambda *_: list(chosen.values))
    return Chosen(chosen.values, fit.sizes, fit.made_up)
