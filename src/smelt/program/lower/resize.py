"""Lowers Resize one axis after the other: an instruction ``Resample`` for each resized axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import same_dim
from smelt.ir.symbolic_dims.invented_dims import is_invented
from smelt.program.instruction import Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.dynamic_movement import is_data_dependent
from smelt.program.lower.dynamic_resize import OF_COORDINATES, emit_dynamic_resize, is_rounded
from smelt.program.lower.registry import lowers
from smelt.program.resampling import CROP, Sampling

COORDINATES = "coordinate_transformation_mode"


@lowers("Resize", "Upsample")
def resize(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one ``Resample`` for each axis that changes, with the attributes of its ``Sampling``.

    Interpolated integers are computed as floats. The axis that shrinks most is resized first, so
    that later ones read fewer elements. Of two axes that grow alike, the inner one is first, so
    that the outer one copies contiguous rows.
    """
    if is_data_dependent(cx, node, range(1, 4)):
        emit_dynamic_resize(cx, node, _axes(cx, node, cx.rank(node.inputs[0])), _sampling(cx, node))
        return
    source, output = cx.slot(node.inputs[0]), cx.define(node.outputs[0])
    sizes, target_sizes = cx.shape(source), cx.shape(output)
    steps = [
        (axis, sampling)
        for axis, sampling in _samplings(cx, node, sizes, target_sizes)
        if not _is_identity(sampling, sizes[axis], target_sizes[axis])
    ]
    if not steps:
        cx.alias(node.outputs[0], source)
        return
    steps.sort(key=lambda step: (_growth(sizes[step[0]], target_sizes[step[0]]), -step[0]))
    dtype = cx.dtype(output)
    needs_floats = steps[0][1].mode != "nearest" and not dtype.is_floating_point()
    if needs_floats:
        computed_type = ir.DataType.DOUBLE if dtype.bitwidth > 16 else ir.DataType.FLOAT
        source = cx.emit_new("Cast", (source,), sizes, dtype=computed_type, saturate=1)
    shape = list(sizes)
    for axis, sampling in steps:
        shape[axis] = target_sizes[axis]
        is_last = axis == steps[-1][0] and not needs_floats
        target = output if is_last else cx.new(cx.dtype(source), shape, f"{node.name}/{axis}")
        cx.emit("Resample", (source,), (target,), axis=axis, **sampling.attributes())
        source = target
    if needs_floats:
        if is_rounded(steps[0][1], dtype):
            source = cx.emit_new("Round", (source,), target_sizes)
        _narrow(cx, source, output)


def _narrow(cx: ProgramBuilder, source: int, output: int) -> None:
    """Emit a Cast of interpolated floats back to integers.

    They are clamped to the range of the integers first, which a cubic kernel may exceed.
    """
    shape, dtype = cx.shape(source), cx.dtype(output)
    limits = np.iinfo(dtype.numpy()) if dtype != ir.DataType.BOOL else None
    if limits is not None:
        low, high = float(limits.min), float(limits.max)
        source = cx.emit_new("Clip", (source,), shape, min=low, max=high)
    cx.emit("Cast", (source,), (output,), saturate=1)


def _samplings(
    cx: ProgramBuilder, node: ir.Node, sizes: Sequence[Dim], target_sizes: Sequence[Dim]
) -> list[tuple[int, Sampling]]:
    """Return the axes that the node names, each with its sampling."""
    axes, sampling = _axes(cx, node, len(sizes)), _sampling(cx, node)
    roi = _floats(cx, node, 1, "roi") if sampling.coordinates == CROP else ()
    if sampling.coordinates == CROP and len(roi) != 2 * len(axes):
        raise cx.refuse(f"roi has {len(roi)} numbers for {len(axes)} axes; it needs two per axis")
    scales = _scales(cx, node, axes, sizes, target_sizes)
    samplings = [
        (axis, replace(sampling, scale=scale)) for axis, scale in zip(axes, scales, strict=True)
    ]
    if not roi:
        return samplings
    regions = zip(roi[: len(axes)], roi[len(axes) :], strict=True)
    pairs = zip(samplings, regions, strict=True)
    return [
        (axis, replace(axis_sampling, start=region_start, end=region_end))
        for (axis, axis_sampling), (region_start, region_end) in pairs
    ]


def _axes(cx: ProgramBuilder, node: ir.Node, rank: int) -> tuple[int, ...]:
    """Return the axes that ``node`` names, all by default."""
    axes = cx.ints(node, "axes")
    return cx.axes(range(rank) if axes is None else axes, rank)


def _sampling(cx: ProgramBuilder, node: ir.Node) -> Sampling:
    """Return the sampling that the attributes request for all axes."""
    mode = node.attributes.get_string("mode", "nearest")
    mode = "linear" if mode == "bilinear" else mode
    lacks_coordinates = cx.opset < OF_COORDINATES
    antialias = bool(node.attributes.get_int("antialias", 0))
    if mode == "nearest" and antialias:
        raise cx.refuse("it has antialias with the mode 'nearest', which ONNX does not define")
    nearest = node.attributes.get_string("nearest_mode", "round_prefer_floor")
    return Sampling(
        mode=mode,
        coordinates="asymmetric"
        if lacks_coordinates
        else node.attributes.get_string(COORDINATES, "half_pixel"),
        nearest="floor" if lacks_coordinates else nearest,
        cubic=node.attributes.get_float("cubic_coeff_a", -0.75),
        antialias=antialias,
        exclude_outside=bool(node.attributes.get_int("exclude_outside", 0)),
        scale=None,
        start=0.0,
        end=1.0,
        extrapolation=node.attributes.get_float("extrapolation_value", 0.0),
    )


def _scales(
    cx: ProgramBuilder,
    node: ir.Node,
    axes: Sequence[int],
    sizes: Sequence[Dim],
    target_sizes: Sequence[Dim],
) -> list[float | None]:
    """Return a scale per axis; None for an axis whose sizes in input and output imply the scale."""
    position = 1 if cx.opset < OF_COORDINATES else 2
    scales = cx.input(node, position)
    empty = scales is not None and scales.shape is not None and 0 in scales.shape.dims
    if "scales" in node.attributes or (scales is not None and not empty):
        attr = node.attributes.get("scales")
        listed = attr.as_floats() if attr is not None else _floats(cx, node, position, "scales")
        if len(listed) != len(axes):
            raise cx.refuse(f"it has {len(listed)} scales for {len(axes)} axes")
        return list(listed)
    policy = node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        if any(is_invented(str(target_sizes[axis])) for axis in axes):
            cx.ints(node, "sizes", 3)  # refuses sizes that do not follow from shapes of inputs
        return [None] * len(axes)
    largest_sizes = cx.ints(node, "sizes", 3) or ()
    ratios = []
    for axis, size in zip(axes, largest_sizes, strict=True):
        known = sizes[axis]
        if not isinstance(known, int):
            raise cx.refuse_size(f"the aspect ratio depends on the symbolic size {known}")
        ratios.append(np.float32(size) / np.float32(known))
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [float(ratio)] * len(axes)


def _floats(cx: ProgramBuilder, node: ir.Node, index: int, name: str) -> tuple[float, ...]:
    """Return the constant input ``index`` as floats; refuses one that is computed."""
    source = cx.input(node, index)
    array = cx.constants.get(source, limit=None)
    if array is None:
        raise cx.refuse_size(f"{name!r} is computed while the model runs")
    return tuple(float(number) for number in array.reshape(-1))


def _is_identity(sampling: Sampling, size: Dim, count: Dim) -> bool:
    """True if the axis keeps its size and reads each row once."""
    if not same_dim(size, count) or sampling.scale not in (None, 1.0):
        return False
    return sampling.coordinates != CROP or (sampling.start, sampling.end) == (0.0, 1.0)


def _growth(size: Dim, count: Dim) -> float:
    """Return the result size ``count`` divided by ``size``; 1 if one of them is symbolic."""
    if not isinstance(size, int) or not isinstance(count, int):
        return 1.0
    return count / max(size, 1)
