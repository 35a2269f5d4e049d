"""Quantize products of a model as long as the error of its outputs stays within a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.names import name_values
from smelt.precision.data import Data
from smelt.precision.error import Metric
from smelt.precision.int8.candidates import Candidate
from smelt.precision.int8.methods import Method
from smelt.precision.int8.observe import CodedRange, saturation
from smelt.precision.int8.opened import open_best
from smelt.precision.int8.resume import Record
from smelt.precision.int8.search import Point, Search, Step
from smelt.precision.int8.settings import Settings
from smelt.precision.int8.written import Metrics, Writing


@dataclass(frozen=True)
class Result:
    """The quantized ``model``, its measured ``error``, and the record of the search.

    ``chosen`` are the forms of candidates, ``kept`` the reasons of products that stay in float.
    ``alone`` and ``curve`` are the measured steps and sets; see ``Search``. ``note`` says where the
    data are from. ``runs`` counts the runs of the search. ``method`` rounded the weights.
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
    ranges: Mapping[str, CodedRange]
    method: Method


def quantize_within(
    model: ir.Model,
    data: Data,
    metrics: Metrics,
    limit: float,
    settings: Settings,
    say: Callable[[str], None],
    record: Record | None = None,
) -> Result:
    """Return ``model`` with as many products in fewer bits as the ``limit`` allows.

    The model has an opset of at least 13, of 21 for int4; the function names its values.
    The errors that ``record`` holds are not measured again, and new ones are added. Raises
    UsageError E677 if no product fits, with the least error of one, and E678 if the model has no
    product with a gain.
    """
    name_values(model)
    opened = open_best(model, data, metrics.choosing, settings, record or Record(), say)
    measure, found = opened.measure, opened.found
    search = Search(measure, limit, settings.gains)
    search.run(found.candidates)
    writing = Writing.of(model, opened, settings, data, metrics)
    written, error = _written_within(writing, search)
    plan = measure.plan(search.chosen)
    coded = sorted((plan.operands | plan.results) - plan.scale_of.keys())
    parameters = {name: opened.parameters[name] for name in coded}
    return Result(
        written,
        error,
        limit,
        metrics.last,
        search.chosen,
        {**found.kept, **_reasons(search, found.candidates)},
        search.alone,
        search.curve,
        data.note,
        measure.runs,
        saturation(opened.variant.model, parameters, data.held_out),
        opened.variant.method,
    )


def _written_within(writing: Writing, search: Search) -> tuple[ir.Model, float]:
    """Return the model with the chosen forms, and its error in ONNX Runtime.

    Integer kernels round differently from the emulation in the search. So the written model is
    measured, and the last choice is dropped until the error is within the limit. If no choice is
    left, the single step with a gain and the least error is written. Raises UsageError E677 if that
    step is not within the limit either, and E678 if no step has a gain.
    """
    measure = search.measure
    gainful = [step for step in search.alone if step.gain > 0]
    if not gainful:
        raise UsageError(
            "E678",
            f"each product would take more {search.gains.kind} in integers",
            why="products of few numbers gain less than it takes to round their operands",
            fix="--gain bytes",
        )
    while search.chosen:
        written, error = writing.write(search.chosen)
        if error <= search.limit:
            return written, error
        search.too_much[search.drop_last()] = error
    least = min(gainful, key=lambda step: step.error)
    search.chosen = {least.candidate: least.form}
    written, error = writing.write(search.chosen)
    if error <= search.limit:
        search.too_much.pop(least.candidate, None)
        return written, error
    text = measure.metric.text
    more = f"{105 * error:.3g}%" if measure.metric.unit == "ratio" else f"{1.05 * error:.3g}"
    raise UsageError(
        "E677",
        f"no product can be quantized within an error of {text(search.limit)}",
        at=f"the best one, {least.candidate.name} ({least.form}), has the error {text(error)}",
        why="each product alone already exceeds the limit",
        fix=f"allow more: --within {more}",
    )


def _reasons(search: Search, candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return why each candidate without a form in fewer bits stays in float."""
    text = search.measure.metric.text
    alone: dict[Candidate, float] = {}
    for step in search.alone:
        if step.gain > 0:
            alone[step.candidate] = min(step.error, alone.get(step.candidate, math.inf))
    reasons = {}
    for each in candidates:
        if each in search.chosen:
            continue
        if each not in alone:
            reasons[each.name] = f"it would take more {search.gains.kind} in integers"
            continue
        error = search.too_much.get(each)
        together = f"; with the others {text(error)}" if error is not None else ""
        reasons[each.name] = f"its error alone is {text(alone[each])}{together}"
    return reasons
