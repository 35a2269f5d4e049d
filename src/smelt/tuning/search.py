"""Greedy search for the fastest setup of a model: change one thing, keep it if that is faster.

Each candidate is timed interleaved with the best setup so far. At the end, the best one is timed
against the source once more; if it is slower, the source itself is the result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import onnx_ir as ir

from smelt.compiler import Source, load
from smelt.errors import InvalidModel, SmeltError
from smelt.frontends.onnx import clone
from smelt.ir.bounds import note_bounds
from smelt.ir.text import canonical
from smelt.passes.interface.materialize_symbolic_dims import bind_dims
from smelt.runtime.fitting_sizes import run_fitting
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import Value, interface_of
from smelt.runtime.named_inputs import Chosen, Given, choose_inputs
from smelt.runtime.session import SessionAdvice
from smelt.targets.ort.artifact import OrtArtifact
from smelt.tuning.race import Comparison, as_session_inputs, opened_session, race, run_once
from smelt.tuning.setup import Setup

PAYS = 0.99
"""A change is kept if the ratio of times is at most this, in no session above 1, and a second race
confirms it."""

QUICKER = 0.9
"""A change that is not slower is kept, too, if the ratio of times to open a session is at most
this."""

HARMLESS = 1.005
"""The largest ratio of times that counts as not slower."""

NOISE = 1.02
"""The source is the result if the best setup takes more than this ratio of its time."""

COMPILED = "as compiled"
"""The candidate that is timed even if the compile used up all seconds. Otherwise the result would
be the source, as if no change were faster."""

NO_TIME = "no time was left"

RACES = 24
"""The number of time slices; the last race takes four of them."""


def tune_model(
    source: Source,
    *,
    seconds: float,
    sizes: Mapping[str, int] | None = None,
    dims: Mapping[str, int | tuple[int, int]] | None = None,
    inputs: Given | None = None,
    threads: int = 1,
    pipeline: str = "default",
    options: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> OrtArtifact:
    """Compile ``source`` for the target ``ort``, and keep the fastest variant on this machine.

    ``threads`` is the number of threads while timing. ``sizes`` are the sizes of symbolic dims
    while timing, else 1; they stay symbolic in the result, except those that ``dims`` binds.
    ``inputs`` are arrays by name; others are made up. ``options`` are further options of the
    target. ``artifact.report["tune"]`` has all that was tried, with times. Raises the errors of a
    compile, and InvalidModel E321 if the source does not run, as on made-up indices.
    """
    model = clone(source) if isinstance(source, ir.Model) else load(source)
    if dims:
        bind_dims(model, {name: n for name, n in dims.items() if not isinstance(n, tuple)})
        note_bounds(model, {name: n for name, n in dims.items() if isinstance(n, tuple)}, 1)
    search = _Search(model, seconds, sizes or {}, inputs or {}, threads, dict(options or {}))
    search.say = say
    return search.run(Setup(pipeline, advice=SessionAdvice(threads=threads)))


class _Search:
    """One search: the model, its inputs, and the candidates tried so far.

    ``slice``: seconds for one race. ``until``: the ``perf_counter`` value after which no candidate
    is tried. ``tried``: one entry for each candidate, for the report.
    """

    def __init__(
        self,
        model: ir.Model,
        seconds: float,
        sizes: Mapping[str, int],
        inputs: Given,
        threads: int,
        options: dict[str, str],
    ) -> None:
        """Divide ``seconds`` into slices for races; the last four are for the final comparison."""
        self.model, self.threads, self.options = model, threads, options
        self.slice = seconds / RACES
        self.until = time.perf_counter() + seconds * (RACES - 4) / RACES
        self.say: Callable[[str], None] = print
        self.tried: list[dict[str, Any]] = []
        self.compiled: dict[Setup, OrtArtifact] = {}
        self.inputs, self.sizes = inputs, dict(sizes)
        self.values: dict[str, Value] = {}
        self.feeds: dict[str, Any] = {}

    def run(self, first: Setup) -> OrtArtifact:
        """Run the search; return the artifact of the best setup with the report."""
        untouched = Setup(untouched=True, advice=SessionAdvice(threads=self.threads))
        source = self.artifact_of(untouched)
        self._run_source(source)
        best, artifact = untouched, source
        best, artifact = self.better(best, artifact, [(COMPILED, first)])
        best, artifact = self.better(best, artifact, best.other_sessions())
        if not best.untouched:
            best, artifact = self.better(best, artifact, best.other_graphs(artifact))
        final = self.compare(source, artifact, 4 * self.slice)
        if final.ratio > NOISE:
            best, artifact = untouched, source
        artifact.report["tune"] = {
            "threads": self.threads,
            "sizes": self.sizes,
            "tried": self.tried,
            "source taken": best.untouched,
            "against the source": None if best.untouched else final.to_json(),
            "session": best.advice.to_json(),
        }
        return artifact

    def _run_source(self, source: OrtArtifact) -> None:
        """Run the source once at sizes that fit; raises InvalidModel if it fails."""
        interface, session = interface_of(self.model), opened_session(source.opener())
        make = partial(random_inputs, self.model)

        def choose(sizes: Mapping[str, int]) -> Chosen:
            """Return inputs for the model at ``sizes``."""
            return choose_inputs(interface, self.inputs, make, sizes)

        def attempt(inputs: Chosen) -> None:
            """Keep the chosen inputs and run the source on them."""
            ports = zip(interface.inputs, inputs.values, strict=True)
            self.values = {port.name: v for port, v in ports if v is not None}
            self.feeds, self.sizes = as_session_inputs(interface, self.values), inputs.sizes
            run_once(session, self.feeds)

        try:
            run_fitting(interface, choose, self.sizes, attempt, self.model)
        except InvalidModel as error:
            raise InvalidModel(
                error.code,
                "the model does not run on the inputs that it would be timed with",
                why=error.why,
                fix="--tune-dim NAME=SIZE with sizes that fit together, or "
                "smelt.tuning.tune_model(..., inputs={name: array})",
            ) from error

    def better(
        self, best: Setup, artifact: OrtArtifact, candidates: Iterable[tuple[str, Setup]]
    ) -> tuple[Setup, OrtArtifact]:
        """Return ``best`` with the changes of all ``candidates`` that are faster, and its artifact.

        Each candidate changes one thing of ``best``; later ones are applied on top of those kept.
        ``tried`` gets the measured ratios, or the reason why a candidate was not timed.
        """
        origin = best
        for name, candidate in list(candidates):
            if time.perf_counter() > self.until and name != COMPILED:
                self.tried.append({"what": name, "taken": False, "why": NO_TIME})
                continue
            self.say(f"trying {name}")
            changed = candidate if best is origin else _merged(origin, best, candidate)
            compiled = self.artifact_of(changed)
            if changed.advice == best.advice and _same(compiled, artifact):
                self.tried.append({"what": name, "taken": False, "why": "it is the same graph"})
                continue
            try:
                comparison = self.compare(artifact, compiled, self.slice)
            except SmeltError as error:  # such as a level at which the runtime lacks a kernel
                self.tried.append({"what": name, "taken": False, "why": f"it fails: {error.why}"})
                continue
            is_kept = _pays(comparison) and _pays(self.compare(artifact, compiled, self.slice))
            self.tried.append({"what": name, "taken": is_kept, **comparison.to_json()})
            if is_kept:
                best, artifact = changed, compiled
        return best, artifact

    def artifact_of(self, setup: Setup) -> OrtArtifact:
        """Return the artifact of ``setup``; setups that differ in session options share a compile.

        Only the last compile is kept, because a model may be large.
        """
        graph = replace(setup, advice=SessionAdvice())
        if graph not in self.compiled:
            self.compiled = {graph: graph.artifact(self.model, self.options)}
        return self.compiled[graph].advised(setup.advice)

    def compare(self, best: OrtArtifact, candidate: OrtArtifact, seconds: float) -> Comparison:
        """Time ``candidate`` against ``best`` for ``seconds``.

        Idle threads do not busy-wait, which would slow the session that runs.
        """
        opens = [artifact.opener(spinning_after_run=False) for artifact in (best, candidate)]
        return race(opens, self.feeds, seconds, self.threads)[1]


def _same(first: OrtArtifact, second: OrtArtifact) -> bool:
    """True if both artifacts have the same graph, so that timing them would only compare noise."""
    return canonical(first.model) == canonical(second.model)


def _pays(comparison: Comparison) -> bool:
    """True if the candidate is faster, or as fast with a session that opens in less time."""
    if comparison.ratio <= PAYS and comparison.high <= 1:
        return True
    return comparison.ratio <= HARMLESS and comparison.creation <= QUICKER


def _merged(origin: Setup, best: Setup, candidate: Setup) -> Setup:
    """Return ``best`` with the changes that ``candidate`` makes to ``origin``."""
    changes = {
        name: value
        for name, value in vars(candidate.advice).items()
        if value != getattr(origin.advice, name)
    }
    return replace(
        best,
        dropped_passes=best.dropped_passes | candidate.dropped_passes,
        dropped_choices=best.dropped_choices | candidate.dropped_choices,
        advice=replace(best.advice, **changes),
    )
