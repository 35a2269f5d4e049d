"""Compare each version of the model in a pipeline with the previous one and with the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.baseline import Baseline, Outputs
from smelt.check.verification_record import VerificationRecord
from smelt.errors import SmeltError
from smelt.ir.interface_change import DimBound
from smelt.passes.base import Exactness, joint_exactness
from smelt.passes.pipeline import Step
from smelt.passes.run import PassReport


@dataclass(frozen=True)
class Finding:
    """A wrong version, which ``step`` computed from ``before`` by the rules in ``fired``.

    ``is_pass_wrong`` is True if the pass exceeds its declaration between ``before`` and this
    version; otherwise every pass stayed within its declaration, but all together did not.
    ``declared`` is the exactness that was exceeded.
    """

    step: Step
    before: ir.Model
    fired: Mapping[str, int]
    is_pass_wrong: bool
    declared: Exactness
    problems: list[str]


class VersionHistory:
    """The versions of a model in a pipeline so far, each compared as it is added.

    Each version is compared with the previous one within the exactness of its pass, and with the
    source within the joint exactness of all passes that changed the model. ``first`` is the number
    of the first pass run to compare; earlier ones are known to be right.
    """

    def __init__(
        self,
        baseline: Baseline,
        dims: Dims | None = None,
        evidence: VerificationRecord | None = None,
        first: int = 0,
    ) -> None:
        """Start with the source as the version before the first pass."""
        self.baseline = baseline
        self.evidence = evidence if evidence is not None else VerificationRecord("each")
        self.declared: list[Exactness] = []
        self.runs = 0
        self._dims = dict(dims or {})
        self._first = first
        self._before = baseline.source
        self._previous: Outputs | None = baseline.outputs

    def follow(self, step: Step, model: ir.Model, report: PassReport) -> Finding | None:
        """Compare the ``model`` after ``step``; return the Finding if it is wrong, else None."""
        self.runs += 1
        if not report.changed:
            return None
        self.declared.append(report.exactness)
        problems, is_pass_wrong = self._problems(model, report)
        before, self._before = self._before, model.clone()
        if not problems:
            return None
        declared = report.exactness if is_pass_wrong else joint_exactness(self.declared)
        return Finding(step, before, report.stats.fired, is_pass_wrong, declared, problems)

    def _problems(self, model: ir.Model, report: PassReport) -> tuple[list[str], bool]:
        """Compare ``model`` with the previous version, then with the source.

        Return the differences, and True if they are differences to the previous version, which
        only the last pass can have caused. The comparison with the source is recorded as evidence.
        Afterwards, the baseline has the interface of ``model``, and ``model`` is the previous
        version. Its outputs are None if they were computed at other sizes or in another runtime.
        """
        total, changes = joint_exactness(self.declared), report.stats.interface
        old_interface = self._at_sizes({c.name: c.size for c in changes if isinstance(c, DimBound)})
        self.baseline = new_interface = old_interface.with_changes(changes, total)
        if self.runs < self._first:
            self._previous = None
            return [], True
        observation = new_interface.observe(model)
        if observation.problems:
            return observation.problems, True
        if observation.runtime != new_interface.runtime:
            try:
                old_interface = old_interface.rerun_at(None, total, "reference")
            except SmeltError as error:
                return [f"it needs the reference evaluator, where the source fails: {error}"], True
            self.baseline = new_interface = old_interface.with_changes(changes, total)
            self._previous = None
        previous = self._previous
        if previous is None:
            previous = old_interface.observe(self._before).outputs
        self._previous = observation.outputs
        if previous:
            carried = old_interface.as_changed_outputs(previous, changes, report.exactness)
            compared = new_interface.compare(carried, observation.outputs, report.exactness)
            problems = new_interface.sentences(compared)
            if problems:
                return problems, True
        compared = new_interface.compare(new_interface.outputs, observation.outputs, total)
        self.evidence.note(new_interface.runtime, self.declared, compared)
        return new_interface.sentences(compared), False

    def _at_sizes(self, bound: dict[str, int]) -> Baseline:
        """Return the baseline with dims at the sizes to which they were bound."""
        if not bound:
            return self.baseline
        self._dims.update(bound)
        self._previous = None
        return self.baseline.rerun_at(self._dims, joint_exactness(self.declared))
