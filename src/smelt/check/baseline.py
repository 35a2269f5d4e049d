"""Run a source model once and compare later versions of the model with its results."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace

import onnx_ir as ir

from smelt.check.adapt import adapted_inputs, adapted_interface, adapted_outputs
from smelt.check.agreement import Dims, disagreements, sizes_in_words
from smelt.check.compare import Comparison, Slack
from smelt.check.comparison_inputs import ComparisonInputs, is_within_domain, of_sizes
from smelt.check.comparison_side import ComparisonSide, open_side
from smelt.check.judgement import compare_declared, margin_of
from smelt.check.measure import HALF_MARGIN, Yardstick
from smelt.check.random_cases import random_cases
from smelt.check.verify import MODES, source_fails
from smelt.check.zero_signs import undetermined
from smelt.errors import SmeltError
from smelt.ir import opset, scope
from smelt.ir.interface_change import InterfaceChange, PortChange
from smelt.passes.base import Exactness, rounding
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Value
from smelt.runtime.runner import RunnerName, open_runner

Outputs = list[Sequence[Value]]
"""The outputs of a model, for each of several inputs."""


@dataclass(frozen=True)
class Observation:
    """The result of running one version of the source: its outputs, or its problems."""

    problems: list[str]
    outputs: Outputs
    runtime: str = ""


class SourceRuns:
    """Runs the source, ``side``, on all ``cases``, and keeps those on which it succeeds.

    Raises the error of the first case if it succeeds on none. Measurements of rounding need more
    runs, which are made on the first request.
    """

    def __init__(self, side: ComparisonSide, cases: Sequence[ComparisonInputs], seed: int) -> None:
        """Run the source on each case, and keep the cases on which it succeeds."""
        assert side.model is not None
        self.model, self.runner, self.runtime = side.model, side.runner, side.runtime
        self.seed = seed
        self.yardstick = Yardstick(self.model, seed, self.runner)
        self.cases: list[ComparisonInputs] = []
        self.outputs: Outputs = []
        self._movement: list[Slack] | None = None
        self._undetermined: list[Slack] | None = None
        failures: list[SmeltError] = []
        for case in cases:
            try:
                outputs = list(side.run(*case.values))
            except SmeltError as error:
                failures.append(error)
                continue
            if is_within_domain(case, outputs):
                self.outputs.append(outputs)
                self.cases.append(case)
        if not self.cases:
            raise source_fails(failures[0], [case.sizes for case in cases], self.model)

    def movement(self) -> list[Slack]:
        """Return how far rounding moves each output; measured on the first call."""
        if self._movement is None:
            self._movement = self.yardstick.movements(self._in_and_out())
        return self._movement

    def undetermined(self) -> list[Slack]:
        """Return where an output depends on the sign of a zero; measured on the first call."""
        if self._undetermined is None:
            self._undetermined = undetermined(self.model, self.runner, self._in_and_out())
        return self._undetermined

    def _in_and_out(self) -> list[tuple[Sequence[Value], Sequence[Value]]]:
        """Return the inputs and the outputs of each case."""
        return [(case.values, own) for case, own in zip(self.cases, self.outputs, strict=True)]


class Baseline:
    """Runs ``source`` on random inputs at every size, and compares other models with the results.

    ``cases`` are inputs that replace the random ones. The model and its weights are not copied, so
    ``source`` must not change. Raises the error of the source if it runs on no input.
    """

    def __init__(
        self,
        source: ir.Model,
        dims: Dims | None = None,
        seed: int = 0,
        modes: Sequence[Mode] = MODES,
        cases: Sequence[ComparisonInputs] = (),
        runner: RunnerName = "auto",
    ) -> None:
        """Open the source, and run it on ``cases`` or on random inputs."""
        self.source, self.seed, self.modes = source, seed, modes
        self._user_cases = cases
        side = open_side(source, "the source", runner)
        assert side.interface is not None
        self.interface = side.interface
        all_cases = cases or list(random_cases(side, side, dims, seed, modes))
        self.runs = SourceRuns(side, all_cases, seed)
        self.inputs: Outputs = [case.values for case in self.runs.cases]
        self.outputs = self.runs.outputs
        self.changes: tuple[InterfaceChange, ...] = ()
        self._random = any(opset.is_random(node) for node in scope.nodes(source))

    @property
    def runtime(self) -> str:
        """The name of the runtime of the source; later versions have to run in the same one."""
        return self.runs.runtime

    def with_changes(self, changes: Sequence[InterfaceChange], declared: Exactness) -> Baseline:
        """Return a baseline for models whose interface differs from this one's by ``changes``.

        An output that is cast from floats to integers is undetermined where an error within
        ``declared``, the exactness of the results so far, could change it.
        """
        if not changes:
            return self
        other = copy(self)
        other.changes = (*self.changes, *changes)
        other.interface = adapted_interface(self.interface, changes)
        other.inputs = [adapted_inputs(values, changes) for values in self.inputs]
        other.outputs = self.as_changed_outputs(self.outputs, changes, declared)
        return other

    def as_changed_outputs(
        self, outputs: Outputs, changes: Sequence[InterfaceChange], declared: Exactness
    ) -> Outputs:
        """Return ``outputs`` of this interface, converted to outputs of the changed interface."""
        casts = any(isinstance(change, PortChange) and change.dtype for change in changes)
        margin = self._margin(declared)
        carried: Outputs = []
        for index, values in enumerate(outputs):
            moved: Slack = [None] * len(values)
            if casts:
                moved = self._movement(index, declared)
            carried.append(adapted_outputs(values, moved, changes, margin)[0])
        return carried

    def rerun_at(
        self, dims: Dims | None, declared: Exactness, runner: RunnerName = "auto"
    ) -> Baseline:
        """Return this baseline at other sizes, or in another runtime, which rounds differently.

        Raises UsageError E632 if no input of the user has these sizes.
        """
        cases: Sequence[ComparisonInputs] = () if dims is not None else self.runs.cases
        if dims is not None and self._user_cases:
            cases = of_sizes(self._user_cases, dims)
        other = Baseline(self.source, dims, self.seed, self.modes, cases, runner)
        return other.with_changes(self.changes, declared)

    def observe(self, model: ir.Model) -> Observation:
        """Run ``model`` on all cases, in the runtime of the source where possible."""
        try:
            # The runtime of the source may lack kernels that a later version needs.
            opened = open_runner(model, self.runs.runner)
        except SmeltError as error:
            return Observation([f"the model no longer runs: {error.what}: {error.why}"], [])
        problems = disagreements(self.interface, opened.interface)
        outputs: Outputs = []
        pairs = [] if problems else zip(self.runs.cases, self.inputs, strict=True)
        for case, values in pairs:
            try:
                outputs.append(list(opened(*values)))
            except SmeltError as error:
                problems.append(
                    f"{self._place_text(case)}: the run fails: {error.why or error.what}"
                )
        return Observation(problems, outputs, opened.name)

    def compare(
        self, expected: Outputs, actual: Outputs, declared: Exactness
    ) -> list[tuple[ComparisonInputs, Comparison]]:
        """Return the comparison of two versions of the source for every case, each with its
        inputs.
        """
        if self._random:
            declared = rounding(declared.ulp)  # random operators differ from run to run
        names = [port.name for port in self.interface.outputs]
        comparisons: list[tuple[ComparisonInputs, Comparison]] = []
        for index, case in enumerate(self.runs.cases):

            def movement(index: int = index) -> Slack:
                """Return how far rounding moves the outputs of the case."""
                return self._movement(index, declared)

            def zero_signs(index: int = index) -> Slack:
                """Return infinity where signs of zeros decide an element of the case, as in 1 / x,
                and 0 elsewhere: the error allowed if a pass may change such signs.
                """
                return self._as_changed(index, self.runs.undetermined(), declared)

            pair = (expected[index], actual[index])
            for exactness in self._accepted_exactnesses(declared):
                compared = compare_declared(
                    *pair,
                    exactness,
                    movement,
                    zero_signs,
                    names=names,
                    base=self.runs.yardstick.margin,
                )
                if all(comparison.ok for comparison in compared):
                    break
            comparisons += [(case, comparison) for comparison in compared]
        return comparisons

    def _accepted_exactnesses(self, declared: Exactness) -> Sequence[Exactness]:
        """Return ``declared``, and for a 16-bit model also its form that allows rounding.

        ONNX Runtime keeps float32 between two nodes that it computes in float32. So even an exact
        rewrite may change the places where it rounds to 16 bits.
        """
        if declared.kind == "exact" and self.runs.yardstick.margin == HALF_MARGIN:
            return (declared, replace(declared, kind="rounding"))
        return (declared,)

    def _margin(self, declared: Exactness) -> float:
        """Return the allowed multiple of the measured rounding."""
        return margin_of(declared, self.runs.yardstick.margin)

    def _movement(self, index: int, declared: Exactness) -> Slack:
        """Return how far rounding moves the outputs of a case, for the changed interface."""
        return self._as_changed(index, self.runs.movement(), declared)

    def _as_changed(self, index: int, slack: Sequence[Slack], declared: Exactness) -> Slack:
        """Return the ``slack`` of case ``index``, converted like its outputs by all changes."""
        values = self.runs.outputs[index]
        return adapted_outputs(values, slack[index], self.changes, self._margin(declared))[1]

    def judge(self, model: ir.Model, declared: Exactness) -> list[str]:
        """Return, as sentences, the differences between ``model`` and the source beyond
        ``declared``.
        """
        observation = self.observe(model)
        if not observation.problems and observation.runtime != self.runtime:
            return self.rerun_at(None, declared, "reference").judge(model, declared)
        return observation.problems or self.sentences(
            self.compare(self.outputs, observation.outputs, declared)
        )

    def sentences(self, compared: Sequence[tuple[ComparisonInputs, Comparison]]) -> list[str]:
        """Return the failed comparisons as sentences with sizes, inputs and seed."""
        return [f"{self._place_text(case)}: {item}" for case, item in compared if not item.ok]

    def _place_text(self, case: ComparisonInputs) -> str:
        """Return the sizes, the kind of inputs and the seed as text."""
        return f"{sizes_in_words(case.sizes)}, {case.inputs} inputs, seed {self.seed}"
