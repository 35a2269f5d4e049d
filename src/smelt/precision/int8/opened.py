"""Open a model for the search: candidates, ranges, and the rounding of weights that errs least."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.cloning import clone_model
from smelt.ir.constants import Constants
from smelt.precision.batches import Sample
from smelt.precision.data import Data, refuse_no_numbers
from smelt.precision.error import Metric
from smelt.precision.int8.bias import Means, channel_means
from smelt.precision.int8.calibrate import finite_limits, least_error, parameters_by_method
from smelt.precision.int8.candidates import (
    Candidate,
    Found,
    Weight,
    find_candidates,
    result_name,
    weight_of,
    with_shared_weights_together,
)
from smelt.precision.int8.clip import Limits
from smelt.precision.int8.linear import Parameters
from smelt.precision.int8.measure import Measure, outputs_of
from smelt.precision.int8.methods import Variant, variants
from smelt.precision.int8.resume import Record
from smelt.precision.int8.settings import FORMS, Settings
from smelt.precision.int8.switches import switched
from smelt.precision.int8.tables import has_whole_blocks
from smelt.precision.outputs import Outputs
from smelt.precision.ranges import Ranges, measure_ranges
from smelt.runtime.interface import interface_of
from smelt.runtime.named_inputs import choose_inputs
from smelt.runtime.onnxruntime import OnnxRuntime


@dataclass(frozen=True)
class Opened:
    """A variant of the model with its candidates, ranges of activations, and measure.

    ``means`` correct biases; they are empty for random data.
    """

    variant: Variant
    found: Found
    parameters: Mapping[str, Parameters]
    measure: Measure
    means: Means

    @property
    def whole_error(self) -> float:
        """The error if each candidate has its first form, static activations before others."""
        return self.measure.error(_first_forms(self.found.candidates))


def _first_forms(candidates: Sequence[Candidate]) -> dict[Candidate, str]:
    """Return the first form of each candidate, ``static`` before others."""
    return {each: "static" if "static" in each.forms else each.forms[0] for each in candidates}


def open_best(
    model: ir.Model,
    data: Data,
    metric: Metric,
    settings: Settings,
    record: Record,
    say: Callable[[str], None],
) -> Opened:
    """Return the variant of ``model`` with the least error if all products have fewer bits.

    ``record`` keeps the measured errors. Raises UsageError E678 if no product can, and E684 if the
    outputs hold no numbers.
    """
    found, limits = _ranged(model, data, settings, say)
    say("opening the model")
    source = OnnxRuntime(clone_model(model), consume=True, optimized=True, threads=0)
    reference = outputs_of(source, data.selection)
    del source
    refuse_no_numbers(reference)
    method = settings.method
    if method == "auto" and (data.drawn or not _methods_may_help(found.candidates, settings)):
        method = "nearest"
    best: Opened | None = None

    def find(work: ir.Model) -> Sequence[Candidate]:
        """Return the candidates of ``work``."""
        return _candidates(work, data, settings).candidates

    # In C, a float Mul in front of a product would keep the operators before it from codes.
    may_add = settings.gains.kind != "cycles"
    made = variants(model, find, data.calibration, method, settings.format, say, may_add=may_add)
    for variant in made:
        if variant.model is not model:
            found, limits = _ranged(variant.model, data, settings, say)
        trial = _opened(variant, found, limits, reference, data, metric, settings, record, say)
        if best is None or trial.whole_error < best.whole_error:
            best = trial
    assert best is not None
    return best


def _methods_may_help(candidates: Sequence[Candidate], settings: Settings) -> bool:
    """True if another method than ``nearest`` may lower the error.

    The others scale activations, which helps products in integers, and choose codes or scales of
    weights in blocks.
    """
    in_integers = any(set(each.forms) - {"weights"} for each in candidates)
    return bool(settings.format.block) or in_integers


def _opened(
    variant: Variant,
    found: Found,
    limits: Mapping[str, Limits],
    reference: Outputs,
    data: Data,
    metric: Metric,
    settings: Settings,
    record: Record,
    say: Callable[[str], None],
) -> Opened:
    """Return ``variant`` with the parameters of activations that have the least error."""
    model, candidates, codes = variant.model, found.candidates, variant.codes
    format_, links = settings.format, settings.links
    names = [name for each in candidates for name in each.nodes]
    means = {} if data.drawn else channel_means(model, names, data.calibration)
    numbers = itertools.count()

    def open_measure(parameters: dict[str, Parameters]) -> Measure:
        """Return the measure of sets of forms with these ``parameters``."""
        trial = switched(model, candidates, parameters, format_, codes, means, links=links)
        run = OnnxRuntime(trial.model, consume=True, optimized=True, threads=0)
        measured = frozenset(parameters)
        label = f"{variant.method} {next(numbers)}"
        return Measure(
            model,
            trial,
            run,
            data.selection,
            reference,
            metric,
            measured,
            links,
            say,
            record,
            label,
        )

    made = parameters_by_method(
        model,
        limits,
        candidates,
        data.calibration,
        settings.ranges,
        signed=format_.signed,
        bits=format_.activation_bits,
    )
    parameters, measure = least_error(made, candidates, open_measure)
    if means:
        corrected, forms = replace(measure, corrects=True), _first_forms(candidates)
        if corrected.error(forms) < measure.error(forms):
            measure = corrected
    return Opened(variant, found, parameters, measure, means)


def _ranged(
    model: ir.Model, data: Data, settings: Settings, say: Callable[[str], None]
) -> tuple[Found, dict[str, Limits]]:
    """Return the candidates of ``model``, and the measured range of each float value by name."""
    say("measuring ranges")
    found = _candidates(model, data, settings)
    needs_ranges = any("static" in each.forms for each in found.candidates)
    ranges = measure_ranges(clone_model(model), data.calibration) if needs_ranges else Ranges()
    limits = finite_limits(ranges)
    with_ranges = [_with_ranges(each, limits, found) for each in found.candidates]
    found.candidates[:] = [each for each in with_ranges if each.forms]
    _refuse_none(found)
    return found, limits


def _candidates(model: ir.Model, data: Data, settings: Settings) -> Found:
    """Return the candidates in the forms that ``settings`` allow; raises UsageError E678."""
    sizes = _sizes(model, data.held_out[0])
    static = not data.drawn
    found = find_candidates(model, sizes, static=static)
    allowed = frozenset({"weights"}) if settings.format.block else FORMS[settings.activations]
    if settings.format.activation_bits == 16:
        allowed -= {"dynamic"}
    if settings.gains.kind == "cycles":
        allowed -= {"weights"}  # C turns such weights into floats in each run
    left = []
    for each in found.candidates:
        forms = tuple(form for form in each.forms if form in allowed)
        if each.operator in settings.keep or settings.keep.intersection(each.nodes):
            found.kept[each.name] = "it is named by keep"
        elif forms:
            left.append(
                replace(
                    each,
                    forms=forms,
                    bytes_saved=_saved(each, model, settings.format.block),
                    stores_codes=each.stores_codes or settings.gains.kind == "cycles",
                )
            )
        else:
            found.kept[each.name] = "no form that is allowed fits its operator"
    found.candidates[:] = with_shared_weights_together(model, left)
    _refuse_none(found)
    return found


def _refuse_none(found: Found) -> None:
    """Raise UsageError E678 if ``found`` has no product or Gather that can have fewer bits."""
    if not found.candidates:
        raise UsageError(
            "E678",
            "no product of the model can be quantized",
            at=[f"{name}: {why}" for name, why in list(found.kept.items())[:8]],
            why="Conv, MatMul, Gemm and Gather with a constant float32 weight can",
            fix="check that the weights are constants: `smelt inspect MODEL`",
        )


def _saved(candidate: Candidate, model: ir.Model, block: int) -> int:
    """Return the bytes that ``candidate`` saves in int8, or in int4 with a scale per ``block``."""
    constants = Constants()
    for node in model.graph if block and candidate.operator == "Gather" else ():
        weight = weight_of(node, constants) if result_name(node) in candidate.nodes else ""
        if isinstance(weight, Weight) and not has_whole_blocks(node, weight, block):
            return candidate.bytes_saved
    if not block:
        return candidate.bytes_saved
    # int4 saves 3.5 of the four bytes of a float; the float scale of each block takes four again.
    return candidate.weights * 7 // 2 - candidate.weights * 4 // block


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
