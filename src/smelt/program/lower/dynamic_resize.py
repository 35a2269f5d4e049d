"""Lowers Resize with data-dependent scales, sizes or region.

The formulas of ``resampling`` give the source rows (taps) of each result row, and their weights.
The run computes them, and reads each tap by a Gather along the axis. The sizes of the result are
computed first; if they are not those that the model declares, the run aborts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.program.instruction import Dim
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import data_dependent_size, declared_size
from smelt.program.resampling import CROP, Sampling, coordinate_of, nearest_of, weight_of

OF_COORDINATES = 11
"""The first opset whose Resize has a coordinate mode; before, scales were its input 1."""

FLOAT, INT64 = ir.DataType.FLOAT, ir.DataType.INT64


@dataclass(frozen=True)
class Axis:
    """One axis to resize: the dims ``before`` and ``after``, and the ``declared`` size.

    The other fields are scalars that the run computes: the size, the size of the result
    (``count``), the scale, size times scale (``length``), and the ends of the region.
    """

    axis: int
    before: Dim
    after: Dim
    declared: Dim
    size: Array
    count: Array
    scale: Array
    length: Array
    start: Array
    end: Array


def is_rounded(sampling: Sampling, dtype: ir.DataType) -> bool:
    """True if integers are rounded to nearest, as in ONNX's reference; else they are truncated.

    ONNX Runtime truncates in its linear kernels without antialiasing, which exist for three integer
    types.
    """
    has_kernel = dtype in (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32)
    is_truncated = sampling.mode == "linear" and not sampling.antialias and has_kernel
    return not is_truncated


def emit_dynamic_resize(
    cx: ProgramBuilder, node: ir.Node, axes: Sequence[int], sampling: Sampling
) -> None:
    """Emit a Resize one axis after the other; interpolated integers are computed as floats."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    if 0 in x.shape:
        raise cx.refuse("an axis to resample has size 0")
    dtype = x.dtype
    needs_floats = sampling.mode != "nearest" and not dtype.is_floating_point()
    if needs_floats:
        x = x.cast(ir.DataType.DOUBLE if dtype.bitwidth > 16 else FLOAT)
    for axis in _axes(m, node, x, axes, sampling):
        positions = m.numbers_below(axis.count, axis.after, node.outputs[0])
        x = _resized(m, x, axis, sampling, positions)
    if needs_floats:
        limits = np.iinfo(dtype.numpy())
        x = m.op("Round", x) if is_rounded(sampling, dtype) else x
        x = m.op("Min", m.op("Max", x, float(limits.min)), float(limits.max)).cast(dtype)
    m.set_output(node.outputs[0], x)


def _axes(m: Steps, node: ir.Node, x: Array, axes: Sequence[int], sampling: Sampling) -> list[Axis]:
    """Return the run-time description of each axis."""
    size_type = FLOAT if sampling.in_float32 else ir.DataType.DOUBLE
    before = [
        m.emit("Shape", (x,), (1,), INT64, start=axis_number, end=axis_number + 1)
        .reshape()
        .cast(size_type)
        for axis_number in axes
    ]
    ends = [m.constant(0, size_type)] * len(axes) + [m.constant(1, size_type)] * len(axes)
    if sampling.coordinates == CROP:
        ends = _numbers(m, node.inputs[1], size_type, 2 * len(axes))
    counts, scales = _counts(m, node, before, size_type)
    described_axes = []
    for i, axis in enumerate(axes):
        after = data_dependent_size(m.cx, node.outputs[0], axis)
        scale = counts[i] / before[i] if scales is None else scales[i]
        length = counts[i] if scales is None else scale * before[i]
        numbers = (before[i], counts[i], scale, length, ends[i], ends[len(axes) + i])
        declared = declared_size(m.cx, node.outputs[0], axis)
        described_axes.append(Axis(axis, x.shape[axis], after, declared, *numbers))
    return described_axes


def _numbers(m: Steps, value: ir.Value | None, size_type: ir.DataType, count: int) -> list[Array]:
    """Return the first ``count`` elements of ``value``, as scalars of type ``size_type``."""
    array = m.array(value)
    if array.shape != (count,):
        raise m.cx.refuse(f"an input has the shape {array.shape}, and needs {count} elements")
    return [array.rows(i, i + 1, 0).reshape().cast(size_type) for i in range(count)]


def _counts(
    m: Steps, node: ir.Node, before: Sequence[Array], size_type: ir.DataType
) -> tuple[list[Array], list[Array] | None]:
    """Return the result size of each axis, rounded in float32 as in ONNX Runtime, and the scales.

    The node gives either scales or sizes. With sizes, the scales are None, unless the aspect ratio
    is kept: then all axes get the smallest, or the largest, ratio.
    """
    position = 1 if m.cx.opset < OF_COORDINATES else 2
    scales_input = m.cx.input(node, position)
    if scales_input is not None and scales_input.name and m.array(scales_input).shape != (0,):
        scales = _numbers(m, scales_input, FLOAT, len(before))
        pairs = zip(before, scales, strict=True)
        counts = [m.op("Floor", size.cast(FLOAT) * scale).cast(size_type) for size, scale in pairs]
        return counts, [scale.cast(size_type) for scale in scales]
    counts = _numbers(m, node.inputs[3], size_type, len(before))
    policy = node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return counts, None
    pairs = zip(counts, before, strict=True)
    ratios = [count.cast(FLOAT) / size.cast(FLOAT) for count, size in pairs]
    ratio = ratios[0]
    for other_ratio in ratios[1:]:
        ratio = m.op("Min" if policy == "not_larger" else "Max", ratio, other_ratio)
    counts = [m.op("Floor", ratio * size.cast(FLOAT) + 0.5).cast(size_type) for size in before]
    return counts, [ratio.cast(size_type)] * len(before)


def _resized(m: Steps, x: Array, axis: Axis, sampling: Sampling, positions: Array) -> Array:
    """Return ``x`` resized along ``axis`` for the result positions ``positions``."""
    coordinates: Array = coordinate_of(
        m, sampling.coordinates, positions, axis.size, axis.count,
        axis.scale, axis.length, axis.start, axis.end,
    )  # fmt: skip
    last, outside = axis.size - 1, None
    if sampling.coordinates == CROP:
        outside = m.op("Not", (coordinates >= 0) & (coordinates <= last))
        coordinates = m.op("Where", outside, 0, coordinates)
    if sampling.mode == "nearest":
        rows = m.op("Min", m.op("Max", nearest_of(m, sampling.nearest, coordinates), 0), last)
        result = x.gather(rows.cast(INT64), axis.axis)
    else:
        result = _summed(m, x, axis, sampling, coordinates)
    if outside is None:
        return result
    return m.op("Where", _along(outside, x, axis.axis), sampling.extrapolation, result)


def _along(rows: Array, x: Array, axis: int) -> Array:
    """Return one number per row of ``axis``, reshaped to broadcast against ``x``."""
    return rows.reshape(rows.shape[0], *[1] * (len(x.shape) - 1 - axis))


def _summed(m: Steps, x: Array, axis: Axis, sampling: Sampling, coordinates: Array) -> Array:
    """Return ``x`` interpolated along ``axis``: the weighted sum of the rows around each of
    ``coordinates``.

    The weights of a position are divided by their sum. A row of weight 0 is masked, because an
    infinite element times 0 would be NaN.
    """
    first = sampling.first_tap(_least_scale(m, axis) if sampling.antialias else 1.0)
    count = coordinates.shape[0]
    base = (m.op("Ceil", coordinates) - 1).reshape(count, 1)
    rows = base + m.constant(np.arange(first, 2 - first), coordinates.dtype)
    distance = m.op("Abs", rows - coordinates.reshape(count, 1))
    if sampling.antialias:
        distance = distance * m.op("Min", axis.scale, 1)
    weights: Array = weight_of(m, sampling.mode, distance, sampling.cubic)
    last = axis.size - 1
    if sampling.exclude_outside:
        weights = m.op("Where", (rows < 0) | (rows > last), 0, weights)
    total = weights.reduce("ReduceSum", 1, keep=True)
    weights = weights / m.op("Where", m.op("Equal", total, 0), 1, total)
    rows = m.op("Min", m.op("Max", rows, 0), last).cast(INT64)
    weights = weights.cast(x.dtype)
    result: Array | None = None
    for tap in range(2 - 2 * first):
        weight = _along(weights.rows(tap, tap + 1, 1).reshape(count), x, axis.axis)
        part = x.gather(rows.rows(tap, tap + 1, 1).reshape(count), axis.axis) * weight
        part = m.op("Where", m.op("Equal", weight, 0), 0, part)
        result = part if result is None else result + part
    assert result is not None
    return result


def _least_scale(m: Steps, axis: Axis) -> float:
    """Return a lower bound of the run-time scale, at most 1, from the declared sizes.

    With antialias, a smaller scale sums more rows, so the bound gives the number of taps.
    """
    if not isinstance(axis.before, int) or not isinstance(axis.declared, int):
        raise m.cx.refuse_size("the number of rows that antialias sums depends on run-time sizes")
    least = max(axis.declared - 0.51, 0.49) / axis.before
    return min(math.nextafter(least, 0.0), 1.0)
