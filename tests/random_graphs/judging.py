"""What a drawn model computes, to hold rewritten ones against it."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import disagreements
from smelt.check.compare import Comparison, compare
from smelt.check.measure import allowance
from smelt.check.witness import Testimony, Witness
from smelt.ir import scope, verify
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

    def problems(self, model: ir.Model, *, exact: bool) -> list[str]:
        """What is wrong with ``model``: an exact rewrite keeps edge cases, too."""
        verify.verify(model)
        runner = open_runner(model, self.witness.runner)
        found = disagreements(self.witness.interface, runner.interface)
        for item in () if found else self.witness.testimony:
            if exact or item.case.inputs == "normal":
                actual = list(runner(*item.case.values))
                allowed = allowance(item.outputs, item.movement, 2.0 if exact else 64.0)
                if not exact:
                    allowed = [None if slack is None else slack + NOISE for slack in allowed]
                compared = compare(item.outputs, actual, slack=allowed)
                bad = [c for c in compared if _differs(c, item, exact)]
                found += [f"{item.case.sizes} {item.case.inputs}: {c}" for c in bad]
        return found


def _differs(comparison: Comparison, item: Testimony, exact: bool) -> bool:
    if comparison.ok or exact or comparison.problem:
        return not comparison.ok
    expected = item.outputs[int(comparison.name)]
    unknown = comparison.unstable + _not_finite(expected)
    return comparison.failed - unknown > FEW * comparison.elements


def _not_finite(value: Value) -> int:
    """Elements that are infinite or NaN: a zero of the other sign may have made them."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return 0
    return int(np.count_nonzero(~np.isfinite(value)))
