"""What a model computes, kept to hold later versions of the model against it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from smelt.check.adapt import adapted_inputs, adapted_interface, adapted_outputs
from smelt.check.agreement import Dims, disagreements
from smelt.check.compare import Slack, compare
from smelt.check.measure import MARGIN, Yardstick, allowance
from smelt.check.subject import as_subject
from smelt.check.verify import MODES, Case, made_up_cases
from smelt.errors import SmeltError
from smelt.ir.interface_change import InterfaceChange
from smelt.passes.base import Exactness
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Value
from smelt.runtime.runner import RunnerName, open_runner


@dataclass
class Testimony:
    """The outputs of one case, and how far rounding moves them."""

    case: Case
    outputs: Sequence[Value]
    movement: Slack


class Witness:
    """Runs ``source`` once on random inputs of every size, and judges other models by it.

    Raises the error of the source if none of the inputs can be run.
    """

    def __init__(
        self,
        source: ir.Model,
        dims: Dims | None = None,
        seed: int = 0,
        modes: Sequence[Mode] = MODES,
    ) -> None:
        subject = as_subject(source, "the source")
        assert subject.interface is not None
        self.interface = subject.interface
        # A later version may have kernels that the source lacks, and they round otherwise.
        self.runner: RunnerName = subject.runner
        self.seed = seed
        self.testimony: list[Testimony] = []
        yardstick = Yardstick(subject, seed)
        refused: list[SmeltError] = []
        for case in made_up_cases(subject, subject, dims, seed, modes):
            try:
                outputs = list(subject.run(*case.values))
            except SmeltError as error:
                refused.append(error)
                continue
            movement = yardstick.movement(case.values, outputs)
            self.testimony.append(Testimony(case, outputs, movement))
        if not self.testimony:
            raise refused[0]

    def judge(
        self, model: ir.Model, margin: float = MARGIN
    ) -> tuple[list[str], list[Sequence[Value]]]:
        """What is wrong with ``model``, in sentences, and its outputs for each case.

        The outputs are complete only if nothing is wrong.
        """
        outputs: list[Sequence[Value]] = []
        try:
            subject = open_runner(model, self.runner)
        except SmeltError as error:
            return [f"the model cannot be run any more: {error.what}: {error.why}"], outputs
        problems = disagreements(self.interface, subject.interface)
        names = [port.name for port in subject.interface.outputs]
        for item in () if problems else self.testimony:
            case = item.case
            sizes = " ".join(f"{name}={size}" for name, size in case.sizes.items())
            place = f"{sizes or 'fixed sizes'}, {case.inputs} inputs, seed {self.seed}"
            try:
                actual = list(subject(*case.values))
            except SmeltError as error:
                problems.append(f"{place}: the run fails: {error.why or error.what}")
                continue
            allowed = allowance(item.outputs, item.movement, margin)
            found = compare(item.outputs, actual, names=names, slack=allowed)
            problems += [f"{place}: {comparison}" for comparison in found if not comparison.ok]
            outputs.append(actual)
        return problems, outputs

    def adapt(self, changes: Sequence[InterfaceChange], margin: float = MARGIN) -> None:
        """Judge from now on what has the interface that ``changes`` make of that of the source."""
        self.interface = adapted_interface(self.interface, changes)
        for item in self.testimony:
            item.case = replace(item.case, values=adapted_inputs(item.case.values, changes))
            item.outputs, item.movement = adapted_outputs(
                item.outputs, item.movement, changes, margin
            )

    def follow(self, outputs: Sequence[Sequence[Value]]) -> None:
        """Judge by ``outputs`` from now on; the measured movement stays that of the source."""
        for item, newer in zip(self.testimony, outputs, strict=True):
            item.outputs = newer


def margin_of(declared: Iterable[Exactness]) -> float:
    """The multiple of measured rounding that passes may move a result by, all together."""
    return MARGIN + 4.0 * sum(exactness.ulp for exactness in declared)
