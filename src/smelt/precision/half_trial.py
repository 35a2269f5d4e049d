"""Try plans on copies of the model until one adds no infinities, and measure its error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.errors import Mismatch
from smelt.ir import scope
from smelt.ir.cloning import clone_model
from smelt.ir.constants import Constants
from smelt.ir.floats import is_float
from smelt.passes.precision.retype import retype
from smelt.precision.emulate import round_each_result
from smelt.precision.error import relative_error
from smelt.precision.half_plan import Plan
from smelt.precision.outputs import Outputs, has_numbers
from smelt.precision.ranges import Feed, Ranges, in_order, measure_ranges
from smelt.runtime.interface import Value
from smelt.runtime.onnxruntime import OnnxRuntime

TRIALS = 4
"""The maximum number of plans that are tried; each returns more nodes to float32."""

INFINITE = "an infinity in half"


@dataclass
class Measurement:
    """A float32 ``model`` with the ``ranges`` of its values over ``feeds``, and the half type."""

    model: ir.Model
    ranges: Ranges
    feeds: Sequence[Feed]
    half: ir.DataType


def finite_plan(
    choose: Callable[[Mapping[ir.Node, str]], Plan], measurement: Measurement
) -> tuple[Plan, float | None]:
    """Return ``(plan, relative error)``, where the plan adds no infinity or NaN to the outputs.

    The error is None if the outputs hold no numbers. ``choose`` makes a plan in which the nodes of
    a mapping stay in float32. After a trial with infinities, the nodes that produced them are added
    to the mapping, with the reason. Raises Mismatch E701 if infinities remain.
    """
    reference = _outputs(clone_model(measurement.model), measurement.feeds)
    infinite: dict[ir.Node, str] = {}
    for _ in range(TRIALS):
        plan = choose(infinite)
        copy, sources = _converted(measurement.model, plan)
        results = _outputs(clone_model(copy), measurement.feeds)
        if not _is_less_finite(reference, results):
            return plan, relative_error(reference, results) if has_numbers(reference) else None
        at_fault = _nodes_at_fault(copy, sources, measurement)
        if not at_fault:
            break
        infinite |= dict.fromkeys(at_fault, INFINITE)
    half = measurement.half.name.lower()
    raise Mismatch(
        "E701",
        f"the model has infinities in {half} that it does not have in float32",
        why="values go beyond the range on the inputs of the measurement",
        fix="keep the nodes that overflow in float32: --keep auto,NAME",
    )


def _converted(model: ir.Model, plan: Plan) -> tuple[ir.Model, dict[ir.Value, ir.Value]]:
    """Return a copy of ``model`` converted by ``plan``, and a map from its values to those of
    ``model``.

    Inputs and outputs keep their types. Casts emulate half kernels, so that overflows show.
    """
    copy = clone_model(model)
    nodes = dict(zip(scope.nodes(model), scope.nodes(copy), strict=True))
    values = dict(zip(scope.values(copy), scope.values(model), strict=True))
    places = {nodes[node]: chosen for node, chosen in plan.places.items()}
    retype(copy, places, plan.half, Constants())
    round_each_result(copy, plan.half)
    return copy, values


def _nodes_at_fault(
    copy: ir.Model, sources: Mapping[ir.Value, ir.Value], measurement: Measurement
) -> list[ir.Node]:
    """Return the producer and the readers of the first value that is finite only in float32.

    They are nodes of the float32 model, to whose values ``sources`` maps the values of ``copy``.
    Empty if there is no such value with a producer.
    """
    measured = measure_ranges(copy, measurement.feeds)
    for value, result in measured.by_value.items():
        source = sources.get(value)
        before = None if source is None else measurement.ranges.of(source)
        if source is None or before is None or result.is_finite or not before.is_finite:
            continue
        producer = source.producer()
        if producer is not None:
            return [producer, *(use.node for use in source.uses())]
    return []


def _outputs(model: ir.Model, feeds: Sequence[Feed]) -> Outputs:
    """Return the outputs of ``model`` for each of ``feeds``; ``model`` is consumed."""
    run = OnnxRuntime(model, consume=True, threads=0)
    names = [port.name for port in run.interface.outputs]
    results = [run(*in_order(run.interface, feed)) for feed in feeds]
    return [_arrays(names, each) for each in results]


def _arrays(names: Sequence[str], values: Sequence[Value]) -> dict[str, np.ndarray]:
    """Return the tensors of ``values`` by name; sequences are left out."""
    pairs = zip(names, values, strict=True)
    return {name: value for name, value in pairs if isinstance(value, np.ndarray)}


def _is_less_finite(reference: Outputs, results: Outputs) -> bool:
    """True if an element of ``results`` is not finite where that of ``reference`` is."""
    return any(
        bool((np.isfinite(array) & ~np.isfinite(second[name])).any())
        for first, second in zip(reference, results, strict=True)
        for name, array in first.items()
        if is_float(array.dtype)
    )
