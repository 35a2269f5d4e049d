"""Choose which candidates to quantize, and in which form, within a limit on the outputs' error.

1. The error is measured with a single candidate quantized, for each candidate and form (a step).
   In large models, several equal candidates are quantized at once and share the error.
2. Steps with a gain are sorted by error squared over gain. Errors of different nodes are nearly
   independent, so their squares add.
3. The longest prefix within the limit is found by bisection, each time with the true error.
4. Later steps are tried one by one, until 12 in a row exceed the limit.
5. Products that gain because their operands have become codes are tried in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from smelt.precision.int8.candidates import Candidate, element_count
from smelt.precision.int8.gains import Gains
from smelt.precision.int8.measure import Measure

MISSES = 12
"""The search ends after so many steps in a row that exceed the limit."""

MAC_BUDGET = 2_000_000_000_000
"""MACs that measuring candidates alone may take: some minutes."""

MOST_SAMPLES = 8
"""The most samples on which candidates are measured alone."""


@dataclass(frozen=True)
class Step:
    """A candidate in a form: the error if only this candidate is quantized, and the gain."""

    candidate: Candidate
    form: str
    error: float
    gain: float

    @property
    def cost(self) -> float:
        """The error squared per gain, by which steps are sorted; infinite without a gain."""
        return self.error**2 / self.gain if self.gain > 0 else math.inf


class Point(NamedTuple):
    """A measured set of candidates: its size, bytes saved, MACs in integers, and error.

    ``last`` is the name of the last candidate of the set.
    """

    candidates: int
    bytes_saved: int
    macs: int
    error: float
    last: str


@dataclass
class Search:
    """The state of a search for forms whose error is at most ``limit``.

    ``chosen``: forms in the order of their choice. ``alone``: each candidate and form measured by
    itself. ``curve``: the measured sets. ``too_much``: errors of candidates that did not fit.
    """

    measure: Measure
    limit: float
    gains: Gains
    chosen: dict[Candidate, str] = field(default_factory=dict)
    alone: list[Step] = field(default_factory=list)
    curve: list[Point] = field(default_factory=list)
    too_much: dict[Candidate, float] = field(default_factory=dict)

    def run(self, candidates: Sequence[Candidate]) -> None:
        """Choose forms for ``candidates``: first by the requested gain, then by bytes."""
        self.alone = self._measure_alone(candidates)
        computed = [step for step in self.alone if step.form != "weights"]
        stored = [step for step in self.alone if step.form == "weights"]
        for steps in (stored, computed) if self.gains.kind == "bytes" else (computed, stored):
            self._add(_best_forms(steps))
            if self.gains.kind != "bytes" and steps is computed:
                self._add_readers_of_codes()

    def _add_readers_of_codes(self) -> None:
        """Add products that gain only if they need not quantize their operand, and need not."""
        for index, step in enumerate(self.alone):
            each = step.candidate
            if step.form != "static" or step.gain > 0 or each in self.chosen:
                continue
            plan = self.measure.plan(self.chosen | {each: "static"})
            gain = self.gains.of(each, "static", reads_codes=each.source in plan.results)
            gain += self.gains.dequantize * self._read_as_codes(plan.results)
            if gain > 0:
                self.alone[index] = replace(step, gain=gain)
                self._add([self.alone[index]])

    def _read_as_codes(self, results: frozenset[str]) -> int:
        """Return how many elements need not become floats with further ``results`` in codes.

        An operator between products, such as a pooling, then reads and returns codes, too.
        """
        known = self.measure.plan(self.chosen).results
        values = {str(v.name): v for node in self.measure.model.graph for v in node.outputs}
        nodes = (values[name].producer() for name in sorted(results - known))
        operands = {v for node in nodes if node is not None for v in node.inputs if v is not None}
        return sum(element_count(v) for v in operands if v.name in known)

    def drop_last(self) -> Candidate:
        """Remove and return the candidate that was chosen last."""
        return self.chosen.popitem()[0]

    def _measure_alone(self, candidates: Sequence[Candidate]) -> list[Step]:
        """Return a step for each candidate and form, with the error if only it is quantized.

        All runs together stay within ``MAC_BUDGET``: large models run on fewer samples, and the
        largest with several equal candidates quantized at once, which then share the error.
        """
        per_run = max(sum(each.macs for each in candidates), 1)
        most = max(MAC_BUDGET // per_run, 1)
        forms = max((len(each.forms) for each in candidates), default=1)
        groups = equal_groups(candidates, -(-forms * len(candidates) // most))
        trials = [(group, form) for group in groups for form in group[0].forms]
        count = max(1, min(MOST_SAMPLES, most // max(len(trials), 1)))
        steps = []
        for index, (group, form) in enumerate(trials, 1):
            name = group[0].name
            self.measure.say(f"error of {index:,} of {len(trials):,} forms: {name} {form}")
            error = self.measure.error(dict.fromkeys(group, form), count)
            share = error / math.sqrt(len(group))
            steps += [Step(each, form, share, self.gains.of(each, form)) for each in group]
        return steps

    def _add(self, steps: Sequence[Step]) -> None:
        """Add the steps that fit, in the order of their cost, to the chosen forms.

        First, a bisection finds the longest prefix of steps that fits; its first trial has all
        steps. Later steps are then tried one by one. With gain in bytes, a step may change the form
        of a candidate that is chosen already.
        """
        upgrade = self.gains.kind == "bytes"
        left = [
            step
            for step in sorted(steps, key=lambda step: (step.cost, step.candidate.nodes))
            if math.isfinite(step.cost) and (upgrade or step.candidate not in self.chosen)
        ]
        fits, too_many = 0, len(left) + 1
        while too_many - fits > 1:
            is_first_trial = not fits and too_many > len(left)
            middle = len(left) if is_first_trial else (fits + too_many) // 2
            if self._try(left[:middle]):
                fits = middle
            else:
                too_many = middle
        self.chosen |= {step.candidate: step.form for step in left[:fits]}
        misses = 0
        for step in left[fits:]:
            if misses == MISSES:
                break
            if self._try([step]):
                self.chosen[step.candidate] = step.form
                misses = 0
            else:
                misses += 1

    def _try(self, steps: Sequence[Step]) -> bool:
        """True if the chosen forms together with ``steps`` stay within the limit."""
        trial = self.chosen | {step.candidate: step.form for step in steps}
        self.measure.say(f"error of {len(trial):,} products together")
        error = self.measure.error(trial)
        macs = sum(each.macs for each, form in trial.items() if form != "weights")
        saved = sum(each.bytes_saved for each in trial)
        last = steps[-1].candidate.name if steps else ""
        self.curve.append(Point(len(trial), saved, macs, error, last))
        if error > self.limit and len(steps) == 1:
            self.too_much[steps[0].candidate] = error
        return error <= self.limit


def equal_groups(candidates: Sequence[Candidate], size: int) -> list[list[Candidate]]:
    """Return ``candidates`` in groups of at most ``size`` with equal operators, sizes and forms.

    Such candidates repeat in the layers of a model. They keep their order.
    """
    groups: list[list[Candidate]] = []
    open_group: dict[object, list[Candidate]] = {}
    for each in candidates:
        key = (each.kind, each.macs, each.weights, len(each.nodes), each.forms)
        group = open_group.get(key)
        if group is None or len(group) == size:
            group = open_group[key] = []
            groups.append(group)
        group.append(each)
    return groups


def _best_forms(steps: Sequence[Step]) -> list[Step]:
    """Return one step per candidate: the step in the form with the least cost."""
    best: dict[Candidate, Step] = {}
    for step in steps:
        known = best.get(step.candidate)
        if known is None or step.cost < known.cost:
            best[step.candidate] = step
    return list(best.values())
