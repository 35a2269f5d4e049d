"""Convert a model to float16 or bfloat16 in place, and measure the error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import onnx_ir as ir

from smelt.check.agreement import Dims
from smelt.check.half_report import HalfReport
from smelt.check.samples import Sample
from smelt.errors import UsageError, did_you_mean
from smelt.frontends.onnx.inline import inline_functions
from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.passes.precision.half_places import WIDE
from smelt.passes.precision.retype import retype
from smelt.precision.emulate import round_each_result
from smelt.precision.half_inputs import half_feeds
from smelt.precision.half_plan import plan_half
from smelt.precision.half_trial import Measurement, finite_plan
from smelt.precision.keep import parse_keep
from smelt.precision.ranges import Feed, measure_ranges
from smelt.precision.sums import add_instead_of_sum
from smelt.runtime.interface import interface_of
from smelt.spans import span
from smelt.targets.base import Target

Format = Literal["float16", "bfloat16"]
HALF = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}


@dataclass(frozen=True)
class HalfOptions:
    """What a conversion to a half type does.

    ``format``: the half type. ``keep``: the nodes that stay in float32, see ``parse_keep``.
    ``half_interface``: inputs and outputs of the model become half, too. ``native``: nodes compute
    in bfloat16 even where ONNX Runtime has no CPU kernel; else casts are put around such nodes.
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
            f"the target {target.name!r} has no conversion to a half type",
            why="the conversion writes an ONNX model, which only the targets onnx and ort do",
            fix="--target ort; coreml has --option precision=fp16",
        )


def half_conversion(
    source: ir.Model,
    half: HalfOptions | str | None,
    samples: Sequence[Sample] | None,
    dims: Dims | None,
    *,
    native: bool = False,
) -> Callable[[ir.Model], HalfReport] | None:
    """Return a function that converts a model made of ``source`` to ``half`` in place; None without
    ``half``.

    The function returns the report with the error, measured on ``samples``, or without them on
    random inputs at the sizes ``dims``. Dims that only ``source`` has are bound by a pass, and
    their sizes are not used.
    """
    if half is None:
        return None
    options, known = half_options(half, native=native), _open_dims(source)

    def convert(model: ir.Model) -> HalfReport:
        """Convert ``model`` in place."""
        bound = known - _open_dims(model)
        left = {name: sizes for name, sizes in (dims or {}).items() if name not in bound}
        report = convert_to_half(model, options, half_feeds(model, samples, left or None))
        report.is_drawn = samples is None
        return report

    return convert


def _open_dims(model: ir.Model) -> frozenset[str]:
    """Return the names of the symbolic dims of the inputs."""
    return frozenset(interface_of(model).symbols())


def convert_to_half(model: ir.Model, options: HalfOptions, feeds: Sequence[Feed]) -> HalfReport:
    """Convert ``model`` to a half type in place, except nodes for which that is unsafe.

    ``feeds`` are the inputs of the runs on which ranges and the error are measured; types of all
    values must be inferred. If the result has an infinity or NaN that the source does not have, the
    nodes that produce it return to float32. Raises UsageError E603 for an unknown word in ``keep``,
    E687 for a model without float32 numbers, and Mismatch E701 if infinities remain.
    """
    if model.functions:
        inline_functions(model)
    add_instead_of_sum(model)
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
    choose = partial(plan_half, model, half, keep, ranges, half_interface=options.half_interface)
    with span("convert a copy"):
        plan, error = finite_plan(choose, Measurement(model, ranges, feeds, half))
    retype(model, plan.places, half, Constants(), half_interface=options.half_interface)
    if half == ir.DataType.BFLOAT16 and not options.native:
        round_each_result(model, half)
    operators: dict[str, Counter[str]] = {}
    for node, reason in plan.kept.items():
        operators.setdefault(reason, Counter())[node.op_type] += 1
    return HalfReport(
        options.format,
        len(plan.places),
        plan.reasons(),
        operators,
        sum(node.op_type == "Cast" and not node.domain for node in scope.nodes(model)),
        error,
        len(feeds),
    )
