"""What a drawn model computes, to hold rewritten ones against it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import disagreements
from smelt.check.compare import Comparison, compare
from smelt.check.measure import allowance
from smelt.check.witness import Witness
from smelt.ir import scope, verify
from smelt.passes.base import Exactness
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Value
from smelt.runtime.runner import open_runner

FEW = 0.02
"""The part of the elements of an output that rounding may move further than its twins tell:
three twins of an ill-conditioned element move together by chance."""


NOISE = 1e-5
"""What a normalization may make of a row of one number, where only rounding is left to divide."""

LOSES_NAN = frozenset(
    {"ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "ArgMax", "ArgMin", "AveragePool"}
)
"""Operators that runtimes let drop a NaN, or not, as their loops fall.

The reference evaluator marks the padding of an AveragePool by NaN, and leaves out any other.
"""


class Judge:
    """Runs a model once on normal numbers and, if NaN is well defined, on edge cases.

    Raises SmeltError if the model does not run.
    """

    def __init__(self, model: ir.Model, seed: int) -> None:
        lossy = any(node.op_type in LOSES_NAN for node in scope.nodes(model))
        modes: tuple[Mode, ...] = ("normal",) if lossy else ("normal", "edges")
        self.witness = Witness(model, None, seed, modes)

    def problems(self, model: ir.Model, declared: Exactness) -> list[str]:
        """What is wrong with ``model``: an exact rewrite keeps the bits, of edge cases, too."""
        verify.verify(model)
        if declared.kind == "exact":
            return self.witness.judge(model, declared)
        runner = open_runner(model, self.witness.testimony.runner)
        found = disagreements(self.witness.interface, runner.interface)
        testimony = self.witness.testimony
        cases = zip(testimony.cases, testimony.outputs, testimony.movement(), strict=True)
        for case, outputs, movement in () if found else cases:
            if case.inputs == "normal":
                actual = list(runner(*case.values))
                allowed = allowance(outputs, movement, 64.0)
                slack = [None if each is None else each + NOISE for each in allowed]
                bad = [c for c in compare(outputs, actual, slack=slack) if _differs(c, outputs)]
                found += [f"{case.sizes} {case.inputs}: {c}" for c in bad]
        return found


def _differs(comparison: Comparison, outputs: Sequence[Value]) -> bool:
    if comparison.ok or comparison.problem:
        return not comparison.ok
    expected = outputs[int(comparison.name)]
    unknown = comparison.unstable + _not_finite(expected)
    return comparison.failed - unknown > FEW * comparison.elements


def _not_finite(value: Value) -> int:
    """Elements that are infinite or NaN: a zero of the other sign may have made them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return 0
    return int(np.count_nonzero(~np.isfinite(value)))
