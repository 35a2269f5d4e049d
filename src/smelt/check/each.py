"""Observers that verify a pipeline: after each pass, or once at the end.

Both allow the errors that the passes which changed the model declare.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.baseline import Baseline
from smelt.check.comparison_inputs import ComparisonInputs, of_sizes
from smelt.check.reproducer import real_weights, write_reproducer
from smelt.check.samples import Sample, cases_of
from smelt.check.verification_record import VerificationRecord
from smelt.check.version_history import Finding, VersionHistory
from smelt.errors import Mismatch, SmeltError
from smelt.ir.interface_change import DimBound, InterfaceChange
from smelt.passes.base import Exactness, joint_exactness
from smelt.passes.pipeline import Step, Steps, to_text
from smelt.passes.run import PassReport
from smelt.runtime.interface import interface_of
from smelt.spans import span


class Verifier:
    """An observer with a ``finish`` step after the pipeline; ``kind`` says when it compares."""

    kind = ""

    def __init__(
        self,
        source: ir.Model,
        steps: Steps,
        dims: Dims | None = None,
        seed: int = 0,
        samples: Sequence[Sample] | None = None,
    ) -> None:
        """Store the source and its pipeline, and call ``begin`` with the cases of ``samples``."""
        self.source, self.steps, self.dims, self.seed = source, steps, dims, seed
        self.evidence = VerificationRecord(self.kind)
        with _timed(self.evidence):
            self.begin(() if samples is None else cases_of(interface_of(source), samples))

    def begin(self, cases: Sequence[ComparisonInputs]) -> None:
        """Prepare to compare on ``cases``, or on made-up inputs if there are none."""

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Do nothing."""


class VerifyFinal(Verifier):
    """Compares the result of a whole pipeline with its source; raises Mismatch E702."""

    kind = "final"

    def begin(self, cases: Sequence[ComparisonInputs]) -> None:
        """Store ``cases`` for the comparison at the end."""
        self.cases = cases
        self.declared: list[Exactness] = []
        self.changes: list[InterfaceChange] = []

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Record the exactness and interface changes of a pass that changed the model."""
        if report.changed:
            self.declared.append(report.exactness)
            self.changes += report.stats.interface

    def finish(self, model: ir.Model) -> None:
        """Compare ``model`` with the source; raises Mismatch E702 with a reproducer."""
        with _timed(self.evidence):
            problems = self._problems(model)
        if problems:
            error = Mismatch(
                "E702",
                "the pipeline changed the result",
                at=problems[:8],
                why="the error is larger than the passes declare",
                fix="`smelt bisect` finds the rewrite at fault",
            )
            error.why = (
                f"the passes that changed the model declare {joint_exactness(self.declared)}"
            )
            text = to_text(self.steps)
            raise _with_reproducer(error, self.source, text, self.seed, self.dims)

    def _problems(self, model: ir.Model) -> list[str]:
        """Return the differences between ``model`` and the source as sentences."""
        if not self.declared:
            return []
        declared = joint_exactness(self.declared)
        bound_dims = {
            change.name: change.size for change in self.changes if isinstance(change, DimBound)
        }
        dims = {**(self.dims or {}), **bound_dims}
        cases = of_sizes(self.cases, bound_dims) if self.cases else ()
        baseline = Baseline(self.source, dims, self.seed, cases=cases)
        baseline = baseline.with_changes(self.changes, declared)
        observation = baseline.observe(model)
        if not observation.problems and observation.runtime != baseline.runtime:
            baseline = baseline.rerun_at(None, declared, "reference")
        if observation.problems:
            return observation.problems
        compared = baseline.compare(baseline.outputs, observation.outputs, declared)
        self.evidence.note(baseline.runtime, self.declared, compared)
        return baseline.sentences(compared)


class VerifyEach(Verifier):
    """Compares the model after each pass with the model before it and with the source.

    Raises Mismatch E701, which names the first wrong pass, with a reproducer.
    """

    kind = "each"

    def begin(self, cases: Sequence[ComparisonInputs]) -> None:
        """Run the source on ``cases`` and start the comparison of versions."""
        baseline = Baseline(self.source, self.dims, self.seed, cases=cases)
        self.history = VersionHistory(baseline, self.dims, self.evidence)

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Compare the model, if the pass changed it."""
        with _timed(self.evidence):
            finding = self.history.follow(step, model, report)
        if finding is not None:
            raise self._mismatch(finding)

    def finish(self, model: ir.Model) -> None:
        """Do nothing: every change has been compared already."""

    def _mismatch(self, finding: Finding) -> SmeltError:
        """Return error E701 for ``finding``, with a reproducer."""
        fired = ", ".join(f"{rule} x{n}" for rule, n in sorted(finding.fired.items()))
        places = [f"rules that fired: {fired}"] if fired else []
        spelling = finding.step.pass_.spelling
        source, text = finding.before, str(finding.step)
        what = f"pass {spelling} changed the result"
        why = f"the pass declares itself {finding.declared}"
        if not finding.is_pass_wrong:
            source, text = self.source, to_text(self.steps)
            what = f"the errors of all passes up to {spelling} add up to a wrong result"
            why = f"each pass stayed within its declaration; together they are {finding.declared}"
        error = Mismatch(
            "E701",
            what,
            at=[*places, *finding.problems][:8],
            why=why,
            fix="`smelt bisect` finds the rewrite at fault; run without the pass until it is "
            "repaired",
        )
        return _with_reproducer(error, source, text, self.seed, self.dims)


@contextmanager
def _timed(evidence: VerificationRecord) -> Iterator[None]:
    """Add the time of the ``with`` block to the record."""
    started = time.perf_counter()
    try:
        with span("verification"):
            yield
    finally:
        evidence.seconds += time.perf_counter() - started


def _with_reproducer(
    error: SmeltError, source: ir.Model, pipeline: str, seed: int, dims: Dims | None
) -> SmeltError:
    """Write a reproducer that runs ``smelt bisect``, and return ``error`` with it as the fix."""
    folder = Path(tempfile.mkdtemp(prefix="smelt-reproducer-"))
    command = ["bisect", "model.onnx", "--pipeline", "@pipeline.txt", "--seed", str(seed)]
    for name, sizes in (dims or {}).items():
        size_list = [sizes] if isinstance(sizes, int) else sizes
        command += ["--dim", f"{name}={','.join(map(str, size_list))}"]
    write_reproducer(folder, command, model=source, pipeline=pipeline, error=error)
    error.fix = (
        f"`sh {folder}/repro.sh` replays it and names the rewrite at fault;"
        " --reduce small.onnx also writes the smallest model with the fault"
    )
    if not real_weights.get():
        error.fix += (
            "; its weights are random numbers of the same scale (--with-weights stores the real)"
        )
    return error
