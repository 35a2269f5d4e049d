"""Compute the scales of activations from measured ranges, by one of several methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import onnx_ir as ir

from smelt.precision.batches import Sample
from smelt.precision.int8.candidates import Candidate
from smelt.precision.int8.clip import METHODS, Limits, Ranges, limits_of
from smelt.precision.int8.linear import Parameters, activation_parameters
from smelt.precision.int8.measure import Measure
from smelt.precision.int8.observe import histograms
from smelt.precision.int8.plan import make_plan
from smelt.precision.ranges import Ranges as Measured


def finite_limits(ranges: Measured) -> dict[str, Limits]:
    """Return (smallest, largest) by name for each float32 value that had finite numbers only."""
    return {
        str(value.name): (measured.smallest, measured.largest)
        for value, measured in ranges.by_value.items()
        if measured.is_finite
        and measured.smallest <= measured.largest
        and value.dtype == ir.DataType.FLOAT
    }


def parameters_by_method(
    model: ir.Model,
    limits: Mapping[str, Limits],
    candidates: Sequence[Candidate],
    samples: Sequence[Sample],
    method: Ranges,
    *,
    signed: bool,
    bits: int = 8,
) -> Iterator[dict[str, Parameters]]:
    """Yield scales and zero points of all values by ``method``; ``auto`` yields each method's.

    ``limits`` are the measured ranges. Methods other than ``minmax`` need histograms, which are
    made only of values that static ``candidates`` quantize; other values keep ``limits``.
    """
    names = METHODS if method == "auto" else [method]
    static = all_static(candidates)
    if not static or method == "minmax":
        yield _parameters(limits, signed=signed, bits=bits)
        return
    plan = make_plan(model, static, frozenset(limits))
    used = sorted((plan.operands | plan.results) & limits.keys())
    by_value = histograms(model, {name: limits[name] for name in used}, samples)
    for name in names:
        chosen = {value: limits_of(histogram, name) for value, histogram in by_value.items()}
        yield _parameters({**limits, **chosen}, signed=signed, bits=bits)


def least_error(
    made: Iterator[dict[str, Parameters]],
    candidates: Sequence[Candidate],
    open_measure: Callable[[dict[str, Parameters]], Measure],
) -> tuple[dict[str, Parameters], Measure]:
    """Return the parameters in ``made`` with the least error, and the measure that uses them.

    The error is that of the model with all static candidates quantized.
    """
    parameters = next(made)
    measure = open_measure(parameters)
    for other in made:
        trial = open_measure(other)
        static = all_static(candidates)
        if trial.error(static) < measure.error(static):
            parameters, measure = other, trial
    return parameters, measure


def all_static(candidates: Sequence[Candidate]) -> dict[Candidate, str]:
    """Return the form ``static`` for each candidate that has it."""
    return {each: "static" for each in candidates if "static" in each.forms}


def _parameters(limits: Mapping[str, Limits], *, signed: bool, bits: int) -> dict[str, Parameters]:
    """Return the scale and zero point for each range."""
    return {
        name: activation_parameters(*pair, signed=signed, bits=bits)
        for name, pair in limits.items()
    }
