"""Measure on the source how far rounding alone may move a result.

No fixed tolerance is right: a softmax is accurate to a few ulp, a deep network to thousands, and a
difference that cancels not at all. So the source runs again *perturbed*: its inputs, its weights
and the results of operators that round (``perturbed.py``) each move by one ulp, up or down at
random. A compiled model that only rounds differently stays within a small multiple of the movement
of each output element under this perturbation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.check.compare import Slack
from smelt.check.comparison_side import ComparisonSide
from smelt.check.perturbed import PerturbedModel, jitter
from smelt.errors import SmeltError, Unsupported
from smelt.ir import scope
from smelt.ir.floats import float_info, is_float, spacing
from smelt.ir.symbolic_dims.invented_dims import every_value
from smelt.runtime.interface import Value
from smelt.runtime.runner import RunnerName, open_runner

PERTURBED_RUNS = 3
MARGIN = 16.0
"""Allowed multiple of the largest movement in the few perturbed runs."""

HALF_MARGIN = 6.0
"""The multiple for models that compute in 16 bits.

In them, every step is perturbed by a whole ulp, which is twice the error of rounding; sixteen times
that error would be as large as the numbers.
"""

HALF = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)

FLOOR_ULP = 4.0
"""Ulp that are always allowed for an element: the last operation rounds, too."""


_PerturbedRun: TypeAlias = Callable[..., Sequence[Value]]
"""From inputs to outputs of one perturbed copy."""

_PerturbedRuns: TypeAlias = Callable[[np.random.Generator], _PerturbedRun]
"""Draws the perturbation of a run."""

Run = tuple[Sequence[Value], Sequence[Value]]
"""Inputs, and the unperturbed outputs on them."""


class Yardstick:
    """Measures how far rounding moves the outputs of ``subject``, a model or an opened model.

    ``runner`` runs the perturbed models; only one of them is in memory at a time. A perturbation is
    an input of the perturbed model, so that one opened model serves all runs. Functions cannot read
    such inputs, so a model with functions is opened again for each run.
    """

    def __init__(
        self, subject: ComparisonSide | ir.Model, seed: int = 0, runner: RunnerName = "auto"
    ) -> None:
        """Store the subject; nothing runs before the first measurement."""
        self.subject = subject
        self.seed = seed
        self.model = subject if isinstance(subject, ir.Model) else subject.model
        self.runner = runner if isinstance(subject, ir.Model) else subject.runner
        self.margin = HALF_MARGIN if computes_in_half(self.model) else MARGIN

    def movement(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> Slack:
        """Return how far rounding moves the outputs on one set of inputs."""
        return self.movements([(inputs, outputs)])[0]

    def movements(self, runs: Sequence[Run]) -> list[Slack]:
        """Return for each run how far the perturbed runs move each element of each output.

        A float moves by the larger of the element's largest movement and the median movement of its
        output, and at least by the step of float16 near zero if it is cast from float16. Integers,
        booleans and strings get infinity (undetermined) where a perturbed run changes them, else 0.
        """
        results_by_run: list[list[list[np.ndarray]]] = [
            [[] for _ in outputs] for _, outputs in runs
        ]
        perturb: _PerturbedRuns | None = None
        for index in range(PERTURBED_RUNS if runs else 0):
            if self.model is not None and self.model.functions:
                perturb = None
            perturb = perturb or self._open_perturbed(index)
            perturbed = perturb(np.random.default_rng([self.seed, index]))
            for (inputs, outputs), moved in zip(runs, results_by_run, strict=True):
                rng = np.random.default_rng([self.seed, index, 1])
                try:
                    results = perturbed(*[_jittered(value, rng) for value in inputs])
                except SmeltError:
                    continue  # this perturbation leaves the domain of the model
                for before, after, perturbed_outputs in zip(outputs, results, moved, strict=True):
                    if _shape(before) is not None and _shape(before) == _shape(after):
                        perturbed_outputs.append(np.asarray(after))
            del perturbed
        steps = _steps_near_zero(self.model)
        return [
            [
                _movement(output, perturbed_outputs, steps[index] if index < len(steps) else 0.0)
                for index, (output, perturbed_outputs) in enumerate(
                    zip(outputs, moved, strict=True)
                )
            ]
            for (_, outputs), moved in zip(runs, results_by_run, strict=True)
        ]

    def _open_perturbed(self, index: int) -> _PerturbedRuns:
        """Return a function that draws perturbed runs.

        Without a model, as for a Python function, the subject itself runs, on perturbed inputs.
        """
        if self.model is None:
            assert isinstance(self.subject, ComparisonSide)
            run = self.subject.run
            return lambda rng: run
        try:
            return self._open_in(index, self.runner)
        except Unsupported:
            if self.runner != "auto":
                raise
            return self._open_in(index, "reference")

    def _open_in(self, index: int, runner: RunnerName) -> _PerturbedRuns:
        """Open the perturbed copy ``index`` of the model in ``runner``.

        Return a function from a random generator to one run with newly drawn perturbations.
        """
        assert self.model is not None
        source = PerturbedModel(self.model.clone(), np.random.default_rng([self.seed, index, 2]))
        run = open_runner(source.model, runner, consume=True)

        def perturbed(rng: np.random.Generator) -> _PerturbedRun:
            """Return the run of the copy with newly drawn weights and factors."""
            moved = source.draw(rng)
            return lambda *inputs: run(*inputs, *moved)

        return perturbed


def computes_in_half(model: ir.Model | None) -> bool:
    """True if ``model`` has float16 or bfloat16 values, whose rounding dominates the error."""
    if model is None:
        return False
    return any(value.dtype in HALF for value in every_value(model)) or any(
        node.attributes.get_int("to", 0) in HALF
        for node in scope.nodes(model)
        if node.op_type == "Cast"
    )


def allowance(outputs: Sequence[Value], movement: Slack, margin: float = MARGIN) -> Slack:
    """Return the absolute error, for each element, that rounding explains.

    It is ``margin`` times the movement, at least ``FLOOR_ULP`` ulp, plus the smallest normal
    number, because kernels may flush subnormal numbers to zero.
    """
    allowed: list[np.ndarray | None] = []
    for output, moved in zip(outputs, movement, strict=True):
        if moved is None or not isinstance(output, np.ndarray) or not is_float(output.dtype):
            allowed.append(moved)
            continue
        with np.errstate(all="ignore"):
            floor = FLOOR_ULP * spacing(output.astype(np.float64), output.dtype)
            allowed.append(np.fmax(margin * moved, floor) + _flushed(output.dtype))
    return allowed


def _flushed(dtype: np.dtype) -> float:
    """Return the smallest normal number of types with at least float32's exponents, else 0.

    Some kernels flush subnormal numbers to zero. In float16 those are too large to ignore.
    """
    smallest = float(float_info(dtype).smallest_normal)
    return smallest if smallest < 1e-30 else 0.0


def _shape(value: Value) -> tuple[int, ...] | None:
    """Return the shape of an array, None for other values."""
    return value.shape if isinstance(value, np.ndarray) else None


def _steps_near_zero(model: ir.Model | None) -> list[float]:
    """Return for each output 2**-24 if it is cast from float16, else 0.

    Numbers of float16 are at least that far apart, so 1e-9 becomes 0. Perturbed runs do not show
    it, because they move each number by a part of itself.
    """
    steps: list[float] = []
    for output in model.graph.outputs if model is not None else ():
        cast = output.producer()
        source = cast.inputs[0] if cast is not None and cast.op_type == "Cast" else None
        is_half = source is not None and source.dtype == ir.DataType.FLOAT16
        steps.append(float(float_info(np.dtype(np.float16)).smallest_subnormal) * is_half)
    return steps


def _movement(output: Value, perturbed_outputs: list[np.ndarray], step: float) -> np.ndarray | None:
    """Return how far each element of ``output`` moved over the perturbed results.

    For floats, the largest change, at least the median change of the output and at least ``step``;
    for other types, inf where an element changed. None if the output is not an array.
    """
    if not isinstance(output, np.ndarray):
        return None
    if not is_float(output.dtype):
        changed = np.zeros(output.shape, bool)
        for after in perturbed_outputs:
            changed |= np.asarray(output != after)
        return np.where(changed, np.inf, 0.0)
    as_double = output.astype(np.float64)
    spread = np.zeros(output.shape)
    with np.errstate(all="ignore"):
        for after in perturbed_outputs:
            moved = np.abs(after.astype(np.float64) - as_double)
            spread = np.fmax(spread, np.where(np.isfinite(moved), moved, 0.0))
    typical = np.median(spread[spread > 0]) if (spread > 0).any() else 0.0
    return np.asarray(np.maximum(spread, max(typical, step)))


def _jittered(value: Value, rng: np.random.Generator) -> Value:
    """Return ``value`` with each float moved by one ulp."""
    if isinstance(value, np.ndarray) and is_float(value.dtype):
        return jitter(value, rng)
    if isinstance(value, list):
        return [jitter(item, rng) if is_float(item.dtype) else item for item in value]
    return value
