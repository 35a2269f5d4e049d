"""Quantize products of a model as long as the error of its outputs stays within a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.cloning import clone_model
from smelt.ir.names import name_values
from smelt.precision.batches import Sample
from smelt.precision.data import Data, refuse_no_numbers
from smelt.precision.error import Metric
from smelt.precision.int8.calibrate import finite_limits, least_error, parameters_by_method
from smelt.precision.int8.candidates import Candidate, Found, find_candidates
from smelt.precision.int8.clip import Limits
from smelt.precision.int8.clip import Ranges as RangeMethod
from smelt.precision.int8.linear import Parameters
from smelt.precision.int8.measure import Measure, outputs_of
from smelt.precision.int8.observe import Coded, saturation
from smelt.precision.int8.plan import make_plan
from smelt.precision.int8.search import Gain, Point, Search, Step
from smelt.precision.int8.switches import switched
from smelt.precision.int8.write import Format, write_plan
from smelt.precision.ranges import Ranges, measure_ranges
from smelt.runtime.interface import interface_of
from smelt.runtime.named_inputs import choose_inputs
from smelt.runtime.onnxruntime import OnnxRuntime

Activations = Literal["static", "dynamic", "auto", "float"]

FORMS: Mapping[Activations, frozenset[str]] = {
    "auto": frozenset({"static", "dynamic", "weights"}),
    "static": frozenset({"static", "weights"}),
    "dynamic": frozenset({"dynamic", "weights"}),
    "float": frozenset({"weights"}),
}
"""The forms of products that each choice of activations allows."""


@dataclass(frozen=True)
class Settings:
    """What the search may choose from.

    ``activations``: by measured ranges (static), by ranges of each run (dynamic), in float, or the
    better of these for each product. ``links``: operators between integer convolutions compute with
    integers, too. ``keep`` names operators and results that stay in float. ``ranges``: how the
    range of an activation is chosen.
    """

    activations: Activations = "auto"
    gain: Gain = "time"
    format: Format = field(default_factory=Format)
    links: bool = True
    keep: frozenset[str] = frozenset()
    ranges: RangeMethod = "minmax"


@dataclass(frozen=True)
class Result:
    """The quantized ``model``, its measured ``error``, and the record of the search.

    ``chosen`` are the forms of candidates, ``kept`` the reasons of products that stay in float.
    ``alone`` and ``curve`` are the measured steps and sets; see ``Search``. ``note`` says where the
    data are from. ``runs`` counts the runs of the search.
    """

    model: ir.Model
    error: float
    limit: float
    metric: Metric
    chosen: Mapping[Candidate, str]
    kept: Mapping[str, str]
    alone: Sequence[Step]
    curve: Sequence[Point]
    note: str
    runs: int
    ranges: Mapping[str, Coded]


def quantize_within(
    model: ir.Model,
    data: Data,
    metric: Metric,
    limit: float,
    settings: Settings = Settings(),
    say: Callable[[str], None] = lambda text: None,
) -> Result:
    """Return ``model`` with as many products in fewer bits as the ``limit`` allows.

    The model has an opset of at least 13, of 21 for int4; the function names its values.
    Raises UsageError E677 if no product fits, with the error of the first step, and E678 if the
    model has no such product.
    """
    name_values(model)
    found, limits = _ranged(model, data, settings, say)
    parameters, measure = _opened(model, found.candidates, limits, data, metric, settings, say)
    search = Search(measure, limit, settings.gain)
    search.run(found.candidates)
    written, error = _written_within(model, search, parameters, settings)
    plan = measure.plan(search.chosen)
    coded = sorted((plan.operands | plan.results) - plan.scale_of.keys())
    return Result(
        written,
        error,
        limit,
        metric,
        search.chosen,
        {**found.kept, **_reasons(search, found.candidates)},
        search.alone,
        search.curve,
        data.note,
        measure.runs,
        saturation(model, {name: parameters[name] for name in coded}, data.held_apart),
    )


def _ranged(
    model: ir.Model, data: Data, settings: Settings, say: Callable[[str], None]
) -> tuple[Found, dict[str, Limits]]:
    """Return the candidates of ``model``, and the measured range of each float value by name."""
    say("measuring ranges")
    found = _candidates(model, data, settings)
    needs_ranges = any("static" in each.forms for each in found.candidates)
    ranges = measure_ranges(clone_model(model), data.calibration) if needs_ranges else Ranges()
    limits = finite_limits(ranges)
    found.candidates[:] = [_with_ranges(each, limits, found) for each in found.candidates]
    return found, limits


def _opened(
    model: ir.Model,
    candidates: Sequence[Candidate],
    limits: Mapping[str, Limits],
    data: Data,
    metric: Metric,
    settings: Settings,
    say: Callable[[str], None],
) -> tuple[dict[str, Parameters], Measure]:
    """Return the parameters of activations with the least error, and the measure of forms."""
    say("opening the model")
    source = OnnxRuntime(clone_model(model), consume=True, optimized=True, threads=0)
    reference = outputs_of(source, data.held_apart)
    refuse_no_numbers(reference)
    del source
    format_, links = settings.format, settings.links

    def open_measure(parameters: dict[str, Parameters]) -> Measure:
        """Return the measure of sets of forms with these ``parameters``."""
        trial = switched(model, candidates, parameters, format_, links=links)
        run = OnnxRuntime(trial.model, consume=True, optimized=True, threads=0)
        measured = frozenset(parameters)
        return Measure(model, trial, run, data.held_apart, reference, metric, measured, links, say)

    made = parameters_by_method(
        model, limits, candidates, data.calibration, settings.ranges, signed=format_.signed
    )
    return least_error(made, candidates, open_measure)


def _candidates(model: ir.Model, data: Data, settings: Settings) -> Found:
    """Return the candidates in the forms that ``settings`` allow; raises UsageError E678."""
    sizes = _sizes(model, data.held_apart[0])
    static = not data.drawn
    found = find_candidates(model, sizes, static=static)
    allowed = FORMS[settings.activations]
    if settings.format.block:
        allowed = frozenset({"weights"})
    left = []
    for each in found.candidates:
        forms = tuple(form for form in each.forms if form in allowed)
        if each.operator in settings.keep or settings.keep.intersection(each.nodes):
            found.kept[each.name] = "it is named by keep"
        elif forms:
            left.append(replace(each, forms=forms))
    found.candidates[:] = left
    if not left:
        raise UsageError(
            "E678",
            "no product of the model can have fewer bits",
            at=[f"{name}: {why}" for name, why in list(found.kept.items())[:8]],
            why="Conv, MatMul, Gemm and Gather with a constant float32 weight can",
            fix="check that the weights are constants: `smelt inspect MODEL`",
        )
    return found


def _sizes(model: ir.Model, sample: Sample) -> Mapping[str, int]:
    """Return the size of each symbolic dim of the inputs for the shapes in ``sample``."""
    interface = interface_of(model)
    pairs = zip(interface.inputs, sample, strict=True)
    given = {port.name: value for port, value in pairs if value is not None}
    return choose_inputs(interface, given, make=None).sizes  # type: ignore[arg-type]


def _with_ranges(candidate: Candidate, limits: Mapping[str, Limits], found: Found) -> Candidate:
    """Return ``candidate`` without the form ``static`` if its operand has no finite range."""
    if "static" not in candidate.forms or candidate.source in limits:
        return candidate
    found.kept[candidate.name] = "its operand was not finite, or empty, on the calibration data"
    return replace(candidate, forms=tuple(form for form in candidate.forms if form != "static"))


def _written_within(
    model: ir.Model, search: Search, parameters: Mapping[str, Parameters], settings: Settings
) -> tuple[ir.Model, float]:
    """Return the model with the chosen forms, and its error in ONNX Runtime.

    Integer kernels round differently from the emulation in the search. So the written model is
    measured, and the last choice is dropped until the error is within the limit. If no choice is
    left, the single step with the least error is written. Raises UsageError E677 if that step is
    not within the limit either.
    """
    measure = search.measure
    while search.chosen:
        written, error = _written(model, search.chosen, measure, parameters, settings)
        if error <= search.limit:
            return written, error
        search.too_much[search.drop_last()] = error
    least = min(search.alone, key=lambda step: step.error)
    search.chosen = {least.candidate: least.form}
    written, error = _written(model, search.chosen, measure, parameters, settings)
    if error <= search.limit:
        search.too_much.pop(least.candidate, None)
        return written, error
    text = measure.metric.text
    more = f"{105 * error:.3g}%" if measure.metric.unit == "ratio" else f"{1.05 * error:.3g}"
    raise UsageError(
        "E677",
        f"no product gets fewer bits within {text(search.limit)}",
        at=f"the first step, {least.candidate.name} ({least.form}), costs {text(error)}",
        why="each product alone already exceeds the limit",
        fix=f"allow more: --within {more}",
    )


def _written(
    model: ir.Model,
    chosen: Mapping[Candidate, str],
    measure: Measure,
    parameters: Mapping[str, Parameters],
    settings: Settings,
) -> tuple[ir.Model, float]:
    """Return a copy of ``model`` with the ``chosen`` forms, and its error in ONNX Runtime.

    The error may be larger than that of the switched model: ONNX Runtime fuses what is written.
    """
    written = clone_model(model)
    plan = make_plan(written, chosen, measure.measured, links=settings.links)
    write_plan(written, plan, parameters, settings.format)
    measure.say(f"checking {len(chosen):,} products in integers")
    run = OnnxRuntime(clone_model(written), consume=True, optimized=True, threads=0)
    return written, measure.metric(measure.reference, outputs_of(run, measure.samples))


def _reasons(search: Search, candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return why each candidate without a form in fewer bits stays in float."""
    text = search.measure.metric.text
    alone: dict[Candidate, float] = {}
    for step in search.alone:
        alone[step.candidate] = min(step.error, alone.get(step.candidate, math.inf))
    reasons = {}
    for each in candidates:
        if each in search.chosen:
            continue
        error = search.too_much.get(each)
        together = f"; with the others {text(error)}" if error is not None else ""
        reasons[each.name] = f"its error alone is {text(alone[each])}{together}"
    return reasons
