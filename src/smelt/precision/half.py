"""Convert a model to float16 or bfloat16 in place, and measure the error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.half_report import HalfReport
from smelt.check.samples import Sample
from smelt.errors import Mismatch, UsageError, did_you_mean
from smelt.frontends.onnx.inline import inline_functions
from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.constants import Constants
from smelt.passes.precision.half_places import WIDE
from smelt.passes.precision.retype import retype
from smelt.precision.emulate import cast_around_gaps
from smelt.precision.half_inputs import half_feeds
from smelt.precision.half_plan import Plan, plan_half
from smelt.precision.keep import parse_keep
from smelt.precision.ranges import Feed, Ranges, in_order, measure_ranges
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.spans import span
from smelt.targets.base import Target

Format = Literal["float16", "bfloat16"]
HALF = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}
REPAIRS = 4
"""The most rounds in which nodes that made infinities go back to float32."""

INFINITE = "it made infinities"


@dataclass(frozen=True)
class HalfOptions:
    """``format``: the half type. ``keep``: see ``parse_keep``. ``half_interface``: ports, too.

    ``native``: nodes read and write bfloat16 also where ONNX Runtime has no CPU kernel for it. Else
    casts stand around them.
    """

    format: Format = "float16"
    keep: str = "auto"
    half_interface: bool = False
    native: bool = False


def half_options(half: HalfOptions | str, *, native: bool = False) -> HalfOptions:
    """Return the options for a name of a half type; raises UsageError E688 for another name."""
    if isinstance(half, HalfOptions):
        return half
    if half not in HALF:
        raise UsageError(
            "E688",
            f"{half!r} is no half type",
            why=f"half types are {' and '.join(HALF)}",
            fix=did_you_mean(half, list(HALF), 'half="float16"'),
        )
    return HalfOptions(cast(Format, half), native=native)


def refuse_half(half: HalfOptions | str | None, target: Target) -> None:
    """Raise UsageError E689 for a half type unless the result for ``target`` is an ONNX model."""
    if half is not None and not target.onnx_runtime:
        raise UsageError(
            "E689",
            f"a half type is asked for with the target {target.name!r}",
            why="the conversion makes an ONNX model, for the targets onnx and ort",
            fix="--target ort; coreml has --option precision=fp16",
        )


def convert_on_samples(
    model: ir.Model,
    half: HalfOptions | str,
    samples: Sequence[Sample] | None,
    dims: Dims | None,
    *,
    native: bool = False,
) -> HalfReport:
    """Convert ``model`` in place, measured on ``samples`` or else on random inputs at ``dims``."""
    options = half_options(half, native=native)
    report = convert_to_half(model, options, half_feeds(model, samples, dims))
    report.is_drawn = samples is None
    return report


def convert_to_half(model: ir.Model, options: HalfOptions, feeds: Sequence[Feed]) -> HalfReport:
    """Compute ``model`` in a half type where that is safe, in place; return what was done.

    Ranges are measured over ``feeds``; types of all values must be inferred. If the result has an
    infinity or NaN that the source does not have, the nodes that made it return to float32. Raises
    UsageError E603 for an unknown word in ``keep``, E687 for a model without float32 numbers, and
    Mismatch E701 if infinities remain.
    """
    if model.functions:
        inline_functions(model)
    half = HALF[options.format]
    keep = parse_keep(options.keep, model)
    if not any(value.dtype == WIDE for value in scope.values(model)):
        raise UsageError(
            "E687",
            f"the model has no float32 numbers to convert to {options.format}",
            why="its values are integers, bools or of other float types",
            fix="leave out --fp16 or --bf16",
        )
    with span("measure ranges"):
        ranges = measure_ranges(model, feeds)
    reference = _outputs(clone_model(model), feeds)
    further: dict[ir.Node, str] = {}
    for _ in range(REPAIRS):
        constants = Constants()
        plan = plan_half(
            model,
            half,
            keep,
            ranges,
            constants,
            half_interface=options.half_interface,
            further=further,
        )
        trial = _converted(model, plan, options)
        results = _outputs(clone_model(trial.model), _as_half(trial.model, feeds, options))
        if not _is_less_finite(reference, results):
            break
        found = _nodes_at_fault(model, trial, ranges, _as_half(trial.model, feeds, options))
        if not found:
            break
        further |= dict.fromkeys(found, INFINITE)
    if _is_less_finite(reference, results):
        raise Mismatch(
            "E701",
            f"the model has infinities in {options.format} that it does not have in float32",
            why="values go beyond the range on the inputs of the measurement",
            fix="--keep names the nodes that must stay in float32",
        )
    retype(model, plan.places, half, Constants(), half_interface=options.half_interface)
    if not options.native:
        cast_around_gaps(model)
    operators: dict[str, Counter[str]] = {}
    for node, reason in plan.kept.items():
        operators.setdefault(reason, Counter())[node.op_type] += 1
    return HalfReport(
        options.format,
        len(plan.places),
        plan.reasons(),
        operators,
        sum(node.op_type == "Cast" and not node.domain for node in scope.nodes(model)),
        relative_error(reference, results),
        len(feeds),
    )


@dataclass
class _Trial:
    """A converted copy, and its nodes by node of the source."""

    model: ir.Model
    values: dict[ir.Value, ir.Value]


def _converted(model: ir.Model, plan: Plan, options: HalfOptions) -> _Trial:
    """Return a copy of ``model`` converted by ``plan``."""
    copy = clone_model(model)
    nodes = dict(zip(scope.nodes(model), scope.nodes(copy), strict=True))
    values = dict(zip(scope.values(copy), scope.values(model), strict=True))
    places = {nodes[node]: chosen for node, chosen in plan.places.items()}
    retype(copy, places, plan.half, Constants(), half_interface=options.half_interface)
    return _Trial(copy, values)


def _nodes_at_fault(
    model: ir.Model, trial: _Trial, ranges: Ranges, feeds: Sequence[Feed]
) -> list[ir.Node]:
    """Return the first nodes of ``model`` whose results are finite in float32 only."""
    cast_around_gaps(trial.model)
    measured = measure_ranges(trial.model, feeds)
    found = []
    for value, result in measured.by_value.items():
        source = trial.values.get(value)
        before = None if source is None else ranges.of(source)
        if source is None or before is None or result.is_finite or not before.is_finite:
            continue
        producer = source.producer()
        if producer is not None:
            found.append(producer)
            found += [use.node for use in source.uses()]
            break
    return found


def _outputs(model: ir.Model, feeds: Sequence[Feed]) -> list[list[np.ndarray]]:
    """Return the outputs of ``model``, which is used up, for each of ``feeds``."""
    cast_around_gaps(model)
    run = OnnxRuntime(model, consume=True, threads=0)
    return [[np.asarray(r) for r in run(*in_order(run.interface, feed))] for feed in feeds]


def _as_half(model: ir.Model, feeds: Sequence[Feed], options: HalfOptions) -> list[Feed]:
    """Return ``feeds`` in the types of the inputs of ``model``."""
    if not options.half_interface:
        return list(feeds)
    inputs = model.graph.inputs
    return [
        [
            value.astype(port.dtype.numpy())
            if isinstance(value, np.ndarray) and value.dtype == np.float32 and port.dtype
            else value
            for port, value in zip(inputs, _ordered(model, feed), strict=True)
        ]
        for feed in feeds
    ]


def _ordered(model: ir.Model, feed: Feed) -> Sequence[Any]:
    """Return the values of ``feed`` in the order of the inputs of ``model``."""
    if isinstance(feed, dict):
        return [feed.get(value.name) for value in model.graph.inputs]
    return list(feed)


Results = list[list[np.ndarray]]


def _is_less_finite(reference: Results, results: Results) -> bool:
    """True if an element of ``results`` is not finite where that of ``reference`` is."""
    return any(
        bool((np.isfinite(a.astype(np.float64)) & ~np.isfinite(b.astype(np.float64))).any())
        for first, second in zip(reference, results, strict=True)
        for a, b in zip(first, second, strict=True)
        if _is_float(a)
    )


def _is_float(array: np.ndarray) -> bool:
    """True for floats, also of types beyond NumPy's own."""
    return array.dtype.kind in "fV"


def relative_error(reference: Results, results: Results) -> float:
    """Return the norm of the difference over the norm of the result, of the worst output."""
    worst = 0.0
    for index in range(len(reference[0]) if reference else 0):
        pairs = [(a[index], b[index]) for a, b in zip(reference, results, strict=True)]
        if not _is_float(pairs[0][0]):
            continue
        difference = norm = 0.0
        for a, b in pairs:
            first, second = a.astype(np.float64), b.astype(np.float64)
            finite = np.isfinite(first)
            difference += float(np.sum(np.square(first - second, where=finite, out=first * 0)))
            norm += float(np.sum(np.square(first, where=finite, out=first * 0)))
        worst = max(worst, float(np.sqrt(difference / norm)) if norm else 0.0)
    return worst
