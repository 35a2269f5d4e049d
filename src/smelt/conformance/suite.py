"""Each case of the suite on one target: it agrees with its source, or is refused in time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from time import perf_counter
from typing import Literal

import numpy as np
import onnx_ir as ir

from smelt.check.verify import verify
from smelt.compiler import compile_model
from smelt.conformance.cases import CASES, Case
from smelt.errors import Mismatch, SmeltError, Unsupported
from smelt.ir import text
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import Value, interface_of
from smelt.targets.base import Artifact, Target
from smelt.targets.phases import NothingTaken
from smelt.targets.watch import verify_phase, watching_phases

RUNS = 5
"""Runs of which the shortest counts."""


Outcome = Literal["agrees", "compiles", "elsewhere", "refused"]


@dataclass(frozen=True)
class Result:
    """What became of a case, and the seconds of a run: here, and on the reference, the host."""

    outcome: Outcome
    seconds: float | None = None
    reference: float | None = None


def conform_all(target: Target, cases: Sequence[Case] = CASES) -> dict[str, Result]:
    """Each of ``cases`` by name: see ``conform``.

    Raises Mismatch E705 also if the target agrees on none: what takes nothing is no target.
    """
    results = {case.name: _timed(target, case, conform(target, case)) for case in cases}
    if all(result.outcome not in ("agrees", "compiles") for result in results.values()):
        raise Mismatch(
            "E705",
            f"target {target.name!r} does not conform: it takes none of {len(results)} cases",
            why=", ".join(f"{name}: {each.outcome}" for name, each in results.items()),
            fix="widen its limits, or give cases of your own that it should take",
        )
    return results


def conform(target: Target, case: Case) -> Outcome:
    """Compile ``case`` for ``target`` and check what comes out, after each phase too.

    Returns "refused" if the target refuses it with a coded Unsupported, "elsewhere" if its
    fallback runs all of it, "compiles" if nothing here can run what it makes. Raises Mismatch E705
    if a promise is broken: other numbers, other bytes the second time, unsafe file names, tensors
    that share bytes, or a refusal of what its limits and ``accepts`` declare that it takes; a
    memory that is too small (E405) may be told late.
    """
    source = text.parse(case.graph)
    took: list[object] = []
    begun = {"before schedule": (took.append, *target.around.get("before schedule", ()))}
    watched = replace(target, around={**target.around, **begun})
    try:
        with watching_phases(verify_phase):
            artifact = _compiled(case, watched, source)
    except SmeltError as error:
        if not isinstance(error, Unsupported) and error.code[:2] not in ("E2", "E4"):
            why = f"it refuses with {error.code}, not E2xx or E4xx: {error}"
            raise _broken(target, case, why) from error
        if took and not case.undefined and error.code != "E405":
            why = f"it refuses with {error.code} what its limits take: {error}"
            raise _broken(target, case, why) from error
        return "refused"
    _check_files(target, case, artifact)
    again = _compiled(case, target, text.parse(case.graph))
    if dict(again.files) != dict(artifact.files):
        raise _broken(target, case, "two compiles gave different bytes")
    if artifact.load is None:
        return "elsewhere" if _nodes_here(target, artifact) == 0 else "compiles"
    if case.undefined:
        return _refuses_to_run(target, case, artifact)
    verify(source, artifact, dims=case.dims or None).check()
    return "elsewhere" if _nodes_here(target, artifact) == 0 else "agrees"


def _compiled(case: Case, target: Target, model: ir.Model) -> Artifact:
    """``model`` for ``target``; that it took nothing is an outcome here, and no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingTaken)
        return compile_model(model, target=target, dims=case.dims)


def _nodes_here(target: Target, artifact: Artifact) -> int | None:
    """How many nodes a target with a fallback took itself; None without other parts."""
    return artifact.plan.facts.get(f"nodes on {target.name}")


def _timed(target: Target, case: Case, outcome: Outcome) -> Result:
    """The outcome with seconds, where the case runs here and has sizes."""
    if outcome != "agrees" or case.undefined:
        return Result(outcome)
    made = [
        compile_model(text.parse(case.graph), target=each, dims=case.dims)
        for each in (target, "host")
    ]
    if made[0].load is None or interface_of(made[0].model).symbols():
        return Result(outcome)
    inputs = random_inputs(made[0].model, {})
    return Result(outcome, *(_seconds(artifact, inputs) for artifact in made))


def _seconds(artifact: Artifact, inputs: Sequence[Value]) -> float:
    """The shortest of a few runs after a first one."""
    artifact(*inputs)
    taken = []
    for _ in range(RUNS):
        begun = perf_counter()
        artifact(*inputs)
        taken.append(perf_counter() - begun)
    return min(taken)


def _refuses_to_run(target: Target, case: Case, artifact: Artifact) -> Outcome:
    """A portable file may keep an operator that only its reader knows; running it may not."""
    try:
        artifact(np.ones(4, np.float32))
    except Unsupported:
        return "refused"
    raise _broken(target, case, "it runs an operator that nobody defined")


def _check_files(target: Target, case: Case, artifact: Artifact) -> None:
    for name, data in artifact.files.items():
        path = PurePosixPath(name)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _broken(target, case, f"the file {name!r} holds no bytes: {repr(data)[:40]}")
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise _broken(target, case, f"the file name {name!r} leaves the output folder")


def _broken(target: Target, case: Case, why: str) -> Mismatch:
    return Mismatch("E705", f"target {target.name!r} does not conform: {case.name}", why=why)
