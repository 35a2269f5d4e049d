"""What a drawn model computes, to hold rewritten ones against it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import onnx_ir as ir
from random_graphs.draft import FLOAT

from smelt.check.agreement import disagreements
from smelt.check.baseline import Baseline
from smelt.check.compare import Comparison, Slack, compare
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.check.measure import allowance
from smelt.errors import SmeltError
from smelt.ir import scope, verify
from smelt.passes.base import Exactness
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Value
from smelt.runtime.runner import open_runner

FEW = 0.02
"""The part of the elements of an output that rounding may move further than its perturbed runs tell:
three perturbed runs of an ill-conditioned element move together by chance."""


NOISE = 1e-4
"""What a normalization may make of a row of one number, where only rounding is left to divide: some
units in the last place of a number near 1, by the root of an epsilon of 1e-5, by a scale."""

LARGE = 1e18
"""The square of more overflows in float32: an infinity that one order of steps has, another has
not."""

LOSES_NAN = frozenset(
    {
        *("ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "ArgMax", "ArgMin", "AveragePool"),
        "ReduceLogSumExp",
    }
)
"""Operators that runtimes let drop a NaN, or not, as their loops fall.

The reference evaluator marks the padding of an AveragePool by NaN, and leaves out any other. ONNX
Runtime's ReduceLogSumExp gives the infinity of inf and NaN where it reduces all axes.
"""


class Judge:
    """Runs a model once on normal numbers and, if NaN is well defined, on special and edge cases.

    Raises SmeltError if the model does not run.
    """

    def __init__(
        self,
        model: ir.Model,
        seed: int,
        undefined: Collection[str] = (),
        modes: tuple[Mode, ...] = ("normal", "special", "edges"),
    ) -> None:
        """``undefined`` are further operators that make nothing certain of a NaN."""
        self.model = model
        lossy = any(
            node.op_type in LOSES_NAN or node.op_type in undefined for node in scope.nodes(model)
        )
        modes = ("normal",) if lossy else modes
        self.baseline = Baseline(model, None, seed, modes)

    def problems(self, model: ir.Model, declared: Exactness) -> list[str]:
        """What is wrong with ``model``: an exact rewrite keeps the bits, of edge cases, too."""
        verify.verify(model)
        if declared.kind == "exact":
            return self.baseline.judge(model, declared)
        runner = open_runner(model, self.baseline.runs.runner)
        found = disagreements(self.baseline.interface, runner.interface)
        return found or self.differences(lambda case: runner(*case.values))

    def differences(self, run: Callable[[ComparisonInputs], Sequence[Value]]) -> list[str]:
        """Where what ``run`` gives is further from the model than rounding goes; a number, an
        infinity and a NaN stay what they are. Edge cases are left out."""
        found: list[str] = []
        runs = self.baseline.runs
        for case, outputs, movement in zip(runs.cases, runs.outputs, runs.movement(), strict=True):
            if case.inputs == "edges":
                continue
            actual = list(run(case))
            bad = _differences(outputs, actual, movement)
            if case.inputs == "special":
                bad += _kinds(outputs, actual)
                bad = [] if bad and self.nearly_overflows(case) else bad
            found += [f"{case.sizes} {case.inputs}: {what}" for what in bad]
        return found

    def nearly_overflows(self, case: ComparisonInputs) -> bool:
        """True if some step of the model gives numbers whose square is too large for float32."""
        steps = self.steps(case)
        return any(np.any(np.isfinite(r) & (np.abs(r) > LARGE)) for r in steps)

    def may_lose_nan(self) -> bool:
        """True if normal numbers make a NaN somewhere, and the model has what may drop one."""
        if not any(node.op_type in LOSES_NAN for node in scope.nodes(self.model)):
            return False
        cases = self.baseline.runs.cases
        return any(np.any(np.isnan(step)) for case in cases for step in self.steps(case))

    def steps(self, case: ComparisonInputs) -> list[np.ndarray]:
        """All floats that the main graph computes of ``case``; none if that cannot be run."""
        wide = self.model.clone()
        listed = set(wide.graph.outputs)
        steps = [v for node in wide.graph for v in node.outputs if v.name and v not in listed]
        wide.graph.outputs.extend(v for v in steps if v.dtype in (FLOAT, ir.DataType.DOUBLE))
        try:
            results = open_runner(wide, self.baseline.runs.runner)(*case.values)
        except SmeltError:
            return []
        return [r for r in results if isinstance(r, np.ndarray) and r.dtype.kind == "f"]


def _differences(outputs: Sequence[Value], actual: Sequence[Value], movement: Slack) -> list[str]:
    allowed = allowance(outputs, movement, 64.0)
    slack = [None if each is None else each + NOISE for each in allowed]
    return [str(c) for c in compare(outputs, actual, slack=slack) if _differs(c, outputs)]


def _differs(comparison: Comparison, outputs: Sequence[Value]) -> bool:
    if comparison.ok or comparison.problem:
        return not comparison.ok
    expected = outputs[int(comparison.name)]
    unknown = comparison.unstable + _not_finite(expected)
    return comparison.failed - unknown > FEW * comparison.elements


def _kinds(expected: Sequence[Value], actual: Sequence[Value]) -> Iterator[str]:
    """Where a number, an infinity or a NaN became one of the others."""
    for index, (x, y) in enumerate(zip(expected, actual, strict=True)):
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.dtype.kind == "f":
            changed = (np.isnan(x) != np.isnan(y)) | (np.isinf(x) != np.isinf(y))
            if changed.any():
                where = tuple(np.argwhere(changed)[0].tolist())
                pair = f"{x[where]} became {y[where]}"
                yield f"output {index}{list(where)}: {pair} ({changed.sum()} of {x.size})"


def _not_finite(value: Value) -> int:
    """Elements that are infinite or NaN: a zero of the other sign may have made them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return 0
    return int(np.count_nonzero(~np.isfinite(value)))
