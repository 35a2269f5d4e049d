"""Run each case of the suite on a target: it must agree with its source, or be refused in time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from time import perf_counter

import numpy as np
import onnx_ir as ir

from smelt.check.verify import verify
from smelt.compiler import compile_model
from smelt.conformance.cases import CASES, Case
from smelt.conformance.result import WORKS, Conformance, Outcome, Result, in_a_line
from smelt.conformance.steps import within_steps
from smelt.errors import Mismatch, SmeltError, Unsupported
from smelt.runtime.inputs import random_inputs
from smelt.runtime.interface import Value, interface_of
from smelt.targets.base import Artifact, Target
from smelt.targets.phase_observer import observe_phases, verify_phase
from smelt.targets.phases import NothingTaken

RUNS = 5
"""The number of timed runs; the shortest counts."""

UNKNOWN_SIZE = 3
"""The size of symbolic dims in the checked run, if the case gives none."""


def conform_all(target: Target, cases: Sequence[Case] = CASES) -> Conformance:
    """Run each of ``cases``, see ``conform``, and return the results, which print as a table.

    Raises Mismatch E705, after all cases, if a case breaks a promise, if the target agrees on none,
    or if no case ran something that it declares.
    """
    results = Conformance(target, {case.name: _timed(target, case) for case in cases})
    wrong = [f"{name}: {r.why}" for name, r in results.items() if r.outcome == "broken"]
    if not wrong and all(result.outcome not in WORKS for result in results.values()):
        raise Mismatch(
            "E705",
            f"target {target.name!r} runs no nodes in any of {len(results)} cases",
            why=", ".join(f"{name}: {result.outcome}" for name, result in results.items()),
            fix="add operators to its limits, or pass cases of your own: conform_all(target, "
            "cases)",
        )
    wrong = wrong or results.never_ran
    if wrong:
        raise Mismatch(
            "E705",
            f"target {target.name!r} does not conform",
            at=wrong,
            fix="correct these problems; add cases of your own for operators that no case runs: "
            "conform_all(target, (*CASES, Case(name, graph)))",
            why="the problems break rules of docs/add-a-target.md",
        )
    return results


def conform(target: Target, case: Case) -> Outcome:
    """Compile ``case`` for ``target`` and check the result and each phase.

    Returns "refused" for a coded Unsupported, "elsewhere" if the fallback runs all of it,
    "compiles" if the artifact cannot run here, else "agrees". Raises Mismatch E705 for other
    numbers, an error in a run, other bytes in the second compile, unsafe file names, overlapping
    tensors, or a refusal of what its limits and ``accepts`` allow; only a memory limit (E405) may
    be reported late.
    """
    return _conform(target, case).outcome


def _conform(target: Target, case: Case) -> Result:
    """Return the Result of ``case``; raises as ``conform`` does."""
    source = case.model()
    accepted: list[object] = []
    phases = {"before schedule": (accepted.append, *target.around.get("before schedule", ()))}
    observed_target = replace(target, around={**target.around, **phases})
    try:
        with observe_phases(verify_phase):
            artifact = _compiled(case, observed_target, source)
    except SmeltError as error:
        if not isinstance(error, Unsupported) and error.code[:2] not in ("E2", "E4"):
            why = f"it refuses with {error.code}, not E2xx or E4xx: {error}"
            raise _broken(target, case, why) from error
        if accepted and not case.undefined and error.code != "E405":
            why = f"its limits allow the case, but it refuses with {error.code}: {error}"
            raise _broken(target, case, why) from error
        return Result("refused", why=in_a_line(error))
    _check_files(target, case, artifact)
    second = _compiled(case, target, case.model())
    if dict(second.files) != dict(artifact.files):
        raise _broken(target, case, "two compiles gave different bytes")
    if artifact.load is not None and case.undefined:
        return Result(_refuses_to_run(target, case, artifact))
    if artifact.load is not None:
        _check_numbers(target, case, source, artifact)
    works: Outcome = "compiles" if artifact.load is None else "agrees"
    taken_counts = dict(artifact.report["taken"])
    outcome = works if taken_counts or not _uses_fallback(artifact) else "elsewhere"
    return Result(outcome, taken_counts, _reasons_of_fallback(target, artifact, source))


def _check_numbers(target: Target, case: Case, source: ir.Model, artifact: Artifact) -> None:
    """Run the artifact and compare it with the source; failures become Mismatch E705."""
    sizes = dict.fromkeys(interface_of(artifact.model).symbols(), UNKNOWN_SIZE)
    sizes |= {name: max(ends) for name, ends in case.dims.items() if isinstance(ends, tuple)}
    try:
        artifact(*random_inputs(artifact.model, sizes))
        report = verify(source, artifact, dims=case.dims or None)
        if not within_steps(case, source, artifact, report):
            report.check()
    except SmeltError as error:
        raise _broken(target, case, in_a_line(error)) from error


def _uses_fallback(artifact: Artifact) -> bool:
    """True if a fallback runs some of the artifact."""
    return "elsewhere" in artifact.report


def _reasons_of_fallback(target: Target, artifact: Artifact, source: ir.Model) -> dict[str, str]:
    """Return why each operator went to the fallback; the reason names a pass that made it."""
    reasons: dict[str, str] = {}
    before = {node.op_type for node in source.graph}
    for entry in artifact.report.get("elsewhere", ()):
        name, why = str(entry["operator"]), str(entry["why"])
        if target.kernels is None and "." not in name and name not in before:
            why += "; a pass introduced it: list in `kernels` the operators of your rules"
        reasons.setdefault(name, why)
    return reasons


def _compiled(case: Case, target: Target, model: ir.Model) -> Artifact:
    """Compile ``model`` for ``target``; ignore the warning that the target runs no node."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NothingTaken)
        return compile_model(model, target=target, dims=case.dims)


def _timed(target: Target, case: Case) -> Result:
    """Return the result with seconds if the case is static and runs here; "broken" on a failure."""
    try:
        result = _conform(target, case)
    except Mismatch as error:
        return Result("broken", why=error.why or error.what)
    if result.outcome != "agrees" or case.undefined:
        return result
    artifacts = [
        compile_model(case.model(), target=name, dims=case.dims) for name in (target, "host")
    ]
    if artifacts[0].load is None or interface_of(artifacts[0].model).symbols():
        return result
    inputs = random_inputs(artifacts[0].model, {})
    own, reference = (_seconds(artifact, inputs) for artifact in artifacts)
    return replace(result, seconds=own, reference=reference)


def _seconds(artifact: Artifact, inputs: Sequence[Value]) -> float:
    """Return the shortest of ``RUNS`` runs after a warm-up."""
    artifact(*inputs)
    times = []
    for _ in range(RUNS):
        begun = perf_counter()
        artifact(*inputs)
        times.append(perf_counter() - begun)
    return min(times)


def _refuses_to_run(target: Target, case: Case, artifact: Artifact) -> Outcome:
    """Return "refused" if a model with an undefined operator refuses to run, as it must.

    Compiling such a model is allowed: the target ``onnx`` writes any operator to its file.
    """
    try:
        artifact(np.ones(4, np.float32))
    except Unsupported:
        return "refused"
    raise _broken(target, case, "it runs an operator that has no schema, no body and no kernel")


def _check_files(target: Target, case: Case, artifact: Artifact) -> None:
    """Raise Mismatch E705 for files without bytes or outside the output folder."""
    for name, data in artifact.files.items():
        path = PurePosixPath(name)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise _broken(target, case, f"the file {name!r} is not bytes: {repr(data)[:40]}")
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise _broken(target, case, f"the file name {name!r} leaves the output folder")


def _broken(target: Target, case: Case, why: str) -> Mismatch:
    """Return E705 for a case that the target breaks."""
    return Mismatch(
        "E705",
        f"target {target.name!r} does not conform: {case.name}",
        why=why,
        fix="correct the target, or refuse such nodes by `accepts`",
    )
