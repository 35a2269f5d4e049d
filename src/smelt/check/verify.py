"""Compare two computations: run both on the same inputs, at several sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from smelt.check.agreement import Dims, disagreements, fixed_sizes, sizes_in_words
from smelt.check.approximation import ANY, approximation_between, flag_unrelated, infinite_slack
from smelt.check.compare import EXACT, Comparison, Slack, Tolerance, compare
from smelt.check.comparison_inputs import ComparisonInputs, is_within_domain
from smelt.check.comparison_side import Checkable, ComparisonSide, open_side
from smelt.check.measure import Yardstick, allowance, computes_in_half
from smelt.check.package_interface import with_one_interface
from smelt.check.random_cases import random_cases
from smelt.check.samples import Sample, cases_of
from smelt.check.verification import Report, Trial
from smelt.errors import SmeltError, UsageError
from smelt.frontends.coreml.detect import is_core_ml
from smelt.ir.out_of_memory import explains_memory
from smelt.runtime.complex_arrays import all_as_pairs, on_complex
from smelt.runtime.inputs import Mode
from smelt.runtime.interface import Value
from smelt.runtime.runner import open_runner
from smelt.runtime.shape_inputs import shape_inputs
from smelt.spans import span

MODES: tuple[Mode, ...] = ("normal", "sparse", "wide", "far")
"""The kinds of random inputs that are tried by default."""


class CompletedTrial(NamedTuple):
    """A trial in which both sides ran: its inputs, and the outputs of the first and second side."""

    trial: Trial
    inputs: Sequence[Value]
    expected: list[Value]
    actual: list[Value]


@explains_memory("verify")
def verify(
    a: Checkable,
    b: Checkable,
    inputs: Sequence[Value] | None = None,
    dims: Dims | None = None,
    *,
    samples: Sequence[Sample] | None = None,
    seed: int = 0,
    tolerance: Tolerance | None = None,
    modes: Sequence[Mode] = MODES,
    names: tuple[str, str] = ("the source", "the result"),
    margin: float | None = None,
) -> Report:
    """Compare ``b`` with ``a``: functions, models, files, artifacts or compiled folders.

    Both run on ``inputs`` (one value for each input), on ``samples`` (arrays by name, one sample
    each or several along a leading axis), or on random inputs for every mode of ``modes`` at every
    size of the symbolic dims: those of ``dims``, such as ``{"B": (1, 3)}``, else 1 and 3. Names,
    element types, order and ranks of inputs and outputs must be equal, too.

    Without a ``tolerance``, ``b`` may differ from ``a`` by ``margin`` times the measured rounding:
    the movement of ``a`` when inputs and weights move by one ulp. The margin is 16, or 6 if one
    side computes in 16 bits. If one side is marked as an approximation
    (``smelt.ir.approximation``), its error is reported, and only an error as large as the numbers
    fails.

    Returns a Report with all mismatches; ``Report.check`` raises them. Raises the error of ``a`` if
    it runs on no input, and UsageError E634 if no side is a model and no inputs are given.
    """
    with span("open"):
        first, second = _open_sides(a, b, names)
    yardstick = _yardstick(first, second, seed)
    margin = yardstick.margin if margin is None else margin
    report = Report(names, tolerance=str(tolerance or f"{margin:g} ulp, as measured"))
    report.in_half = computes_in_half(second.model or second.compiled)
    approximation = "" if tolerance is not None else approximation_between(first, second)
    if approximation:
        tolerance, report.approximation = ANY, approximation
        report.tolerance = f"any error smaller than the numbers, for {approximation}"
    if first.interface is not None and second.interface is not None:
        report.interface = disagreements(first.interface, second.interface)
        if report.interface:
            return report
    if samples is not None:
        cases = _samples(first, second, samples)
    elif inputs is None:
        cases = random_cases(first, second, dims, seed, modes)
    else:
        cases = [ComparisonInputs(_with_pairs(first, second, inputs), {}, "given")]
    completed = _run(first, second, cases, seed, report)
    if approximation:
        slacks: list[Slack] = [infinite_slack(expected) for _, _, expected, _ in completed]
    elif tolerance is None:
        slacks = _slacks(yardstick, completed, margin, of_source=yardstick.subject is first)
    else:
        slacks = [()] * len(completed)
    _compare_outputs(second, completed, slacks, tolerance, margin)
    if approximation:
        for ran in completed:
            ran.trial.outputs = flag_unrelated(ran.trial.outputs)
    return report


def _compare_outputs(
    second: ComparisonSide,
    completed: Sequence[CompletedTrial],
    slacks: Sequence[Slack],
    tolerance: Tolerance | None,
    margin: float,
) -> None:
    """Compare the outputs of each completed trial, within ``tolerance`` or else its slack."""
    names = [port.name for port in second.interface.outputs] if second.interface else []
    for ran, slack in zip(completed, slacks, strict=True):
        with span("compare"):
            ran.trial.outputs = compare(
                ran.expected,
                ran.actual,
                tolerance or EXACT,
                names=names,
                slack=slack,
                margin=margin if tolerance is None else 0.0,
            )


def _samples(
    first: ComparisonSide, second: ComparisonSide, samples: Sequence[Sample]
) -> Iterable[ComparisonInputs]:
    """Return the cases of the user's samples."""
    sides = [side.interface for side in (first, second) if side.interface is not None]
    sizes = fixed_sizes(sides[0], sides[-1]) if sides else None
    return cases_of(sides[0] if sides else None, samples, sizes)


def _run(
    first: ComparisonSide,
    second: ComparisonSide,
    cases: Iterable[ComparisonInputs],
    seed: int,
    report: Report,
) -> list[CompletedTrial]:
    """Run both sides on all cases; add every trial to ``report``, return those where both ran.

    Raises the error of ``first``, the source, if it ran in none.
    """
    source, result = report.names
    failures: list[SmeltError] = []
    completed: list[CompletedTrial] = []
    for case in cases:
        trial = Trial(case.sizes, case.inputs, seed)
        report.trials.append(trial)
        expected = _attempt(first, case.values, source)
        if isinstance(expected, SmeltError):
            # The inputs may be outside the domain of the source: then this trial does not count.
            trial.skipped = f"{source}: {expected.why or expected.what}"
            failures.append(expected)
            continue
        if not is_within_domain(case, expected):
            report.trials.remove(trial)
            continue
        actual = _attempt(second, case.values, result)
        if isinstance(actual, SmeltError):
            trial.failure = f"{result} fails where {source} works: {actual.why or actual.what}"
            continue
        completed.append(CompletedTrial(trial, case.values, expected, actual))
    if failures and len(failures) == len(report.trials):
        tried = [trial.sizes for trial in report.trials]
        raise source_fails(failures[0], tried, first.model or second.model)
    return completed


def _slacks(
    yardstick: Yardstick, completed: Sequence[CompletedTrial], margin: float, *, of_source: bool
) -> list[Slack]:
    """Return the error that rounding explains in each trial, measured on ``yardstick``.

    ``of_source``: the yardstick measures the first side, so its outputs are compared with the
    perturbed ones; else those of the second side.
    """
    inputs = [ran.inputs for ran in completed]
    outputs = [ran.expected if of_source else ran.actual for ran in completed]
    with span("measure rounding"):
        movements = yardstick.movements(list(zip(inputs, outputs, strict=True)))
    return [
        allowance(output, movement, margin)
        for output, movement in zip(outputs, movements, strict=True)
    ]


def source_fails(
    error: SmeltError, sizes: Iterable[Mapping[str, int]], model: ir.Model | None
) -> SmeltError:
    """Return ``error`` with a fix: the source ran at none of ``sizes``.

    The fix proposes other sizes, or inputs of the user if an input of ``model`` holds a shape.
    """
    tried = dict.fromkeys(sizes_in_words(trial) for trial in sizes if trial)
    shapes = shape_inputs(model) if model is not None else []
    if error.code == "E321" and shapes:
        error.what = (
            f"the source itself fails at {'; '.join(tried) or 'fixed sizes'}, on random inputs"
        )
        names = ", ".join(map(repr, shapes))
        error.fix = f"give your own inputs, because {names} holds a shape: --inputs data.npz"
    elif error.code == "E321" and tried:
        error.what = f"the source itself fails at {'; '.join(tried)}: nothing to compare with"
        options = " ".join(
            f"--dim {text.partition('=')[0]}=2,8" for text in next(iter(tried)).split()
        )
        error.fix = f"choose sizes that fit together, such as {options}"
    return error


def _attempt(side: ComparisonSide, values: Sequence[Value], name: str) -> list[Value] | SmeltError:
    """Return the outputs of ``side``, or its error; the caller decides whose fault an error is."""
    with span("run", side=name):
        try:
            return list(side.run(*values))
        except SmeltError as error:
            return error


def _open_sides(
    a: Checkable, b: Checkable, names: tuple[str, str]
) -> tuple[ComparisonSide, ComparisonSide]:
    """Open both sides in the same runner, because different kernels round differently."""
    packages = is_core_ml(a), is_core_ml(b)
    a, b = with_one_interface(a, b)
    first, second = _with_complex(open_side(a, names[0]), open_side(b, names[1]))
    for side in itertools.compress((first, second), packages):
        side.round_half()
    used = {_runner_of(side) for side in (first, second)} - {None}
    if used == {"onnxruntime", "reference"}:
        first, second = open_side(a, names[0], "reference"), open_side(b, names[1], "reference")
    return first, second


def _with_pairs(
    first: ComparisonSide, second: ComparisonSide, inputs: Sequence[Value]
) -> Sequence[Value]:
    """Return ``inputs`` with complex numbers as pairs of reals; E632 if they are a mapping."""
    if isinstance(inputs, Mapping):
        what = f"inputs= got a {type(inputs).__name__}"
        why = "it takes a list with one array per input, in order"
        fix = "pass samples=[{name: array}] for arrays by name"
        raise UsageError("E632", what, why=why, fix=fix)
    interface = first.interface or second.interface
    return inputs if interface is None else all_as_pairs(interface.inputs, inputs)


def _with_complex(
    first: ComparisonSide, second: ComparisonSide
) -> tuple[ComparisonSide, ComparisonSide]:
    """Make a function that is compared with a model accept and return complex numbers as pairs."""
    interface = first.interface or second.interface
    if interface is None or not any(
        port.complex for port in (*interface.inputs, *interface.outputs)
    ):
        return first, second
    for side in (first, second):
        if side.interface is None:
            side.run = on_complex(interface, side.run)
    return first, second


def _runner_of(side: ComparisonSide) -> str | None:
    """Return the runtime of a model, None for other sides."""
    return getattr(side.run, "name", None) if side.model is not None else None


def _yardstick(first: ComparisonSide, second: ComparisonSide, seed: int) -> Yardstick:
    """Return a Yardstick of the side on which rounding is measured.

    It is a side that computes in 16 bits, else the source, else the other side, if they are models.
    For an artifact, its model is measured if that runs here.
    """
    for is_preferred in (computes_in_half, lambda model: model is not None):
        for side in (first, second):
            if is_preferred(side.model):
                return Yardstick(side, seed)
        for side in (first, second):
            model = side.compiled
            if model is not None and is_preferred(model) and _can_run(model):
                return Yardstick(model, seed)
    return Yardstick(first, seed)


def _can_run(model: ir.Model) -> bool:
    """False for a model with operators that only its target supports."""
    try:
        open_runner(model.clone(), consume=True)
    except SmeltError:
        return False
    return True


__all__ = ["Comparison", "Report", "Tolerance", "verify"]
