"""Lowers operators that read images at computed positions: GridSample, RoiAlign, DeformConv.

``sampler.Sampler`` reads a few pixels for each position, and sums them by weights. ``affine_grid``
lowers the operator that computes positions for GridSample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.convolution import window_attributes
from smelt.program.lower.registry import lowers
from smelt.program.lower.sampler import NARROW, Extent, Sampler, Tap, around, within

MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names of modes in opset 16."""

Edge = Callable[[Array], Array]


@lowers("GridSample")
def grid_sample(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit samples of x [N, C, sizes...] at the positions of grid [N, places..., rank].

    The coordinates of a position are from -1 to 1, that of the last axis first.
    """
    m = Steps(cx)
    x, grid = m.array(node.inputs[0]), m.array(node.inputs[1])
    computed_type = ir.DataType.FLOAT if grid.dtype in NARROW else grid.dtype
    dtype, mode = x.dtype, node.attributes.get_string("mode", "linear")
    mode = MODES.get(mode, mode)
    if mode != "nearest" and dtype in NARROW:
        x = x.cast(ir.DataType.FLOAT)
    elif mode != "nearest" and dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
        raise cx.refuse("interpolation needs floating-point elements")
    sampler = Sampler(m, x, computed_type)
    batch, (_, *grid_sizes, rank) = sampler.batch, grid.shape
    if rank != len(sampler.sizes) or 0 in (*x.shape[2:], *grid.shape):
        raise cx.refuse("the grid does not fit the image, or one of them is empty")
    if mode == "cubic" and rank != 2:
        raise cx.refuse("cubic interpolation is defined for two spatial dims only")
    count = dim_product(grid_sizes)
    flat = grid.cast(computed_type).reshape(batch, count, rank)
    align = bool(node.attributes.get_int("align_corners", 0))
    padding = node.attributes.get_string("padding_mode", "zeros")
    axes, last = [], len(sampler.sizes) - 1
    for axis, size in enumerate(sampler.sizes):
        column = flat.rows(last - axis, last - axis + 1, 2).reshape(batch, count)
        axes.append(_taps(m, column, size, mode, padding, align))
    numbers = m.numbers(batch).reshape(batch, 1)
    result = sampler.total(numbers, axes).cast(dtype).transpose(0, 2, 1)
    m.set_output(node.outputs[0], result.reshape(batch, sampler.channels, *grid_sizes))


def _taps(m: Steps, n: Array, size: Extent, mode: str, padding: str, align: bool) -> list[Tap]:
    """Return the pixels along an axis of ``size`` that coordinates ``n`` from -1 to 1 read.

    ``align``: -1 and 1 are the centers of the first and last pixel, else their outer edges.
    ``padding`` says how positions outside of the image are read: as zeros, or at the border, or
    reflected.
    """
    x = (n + 1) * ((size - 1) / 2) if align else ((n + 1) * size - 1) / 2
    low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)

    def reflected(index: Array) -> Array:
        """Return positions reflected into the image."""
        return _reflected(m, index, low, high)

    edge: Edge | None = None
    if mode == "nearest":
        x = m.op("Round", x)
    if padding == "border":
        # Positions less than half a pixel off the edge stay, as in ONNX's reference.
        beyond = m.op("Or", m.op("Less", x, low), m.op("Greater", x, high))
        x = m.op("Where", beyond, m.op("Min", m.op("Max", x, 0), size - 1), x)
    elif padding == "reflection":
        x, edge = reflected(x), reflected
    taps = around(m, x, mode)
    if padding == "zeros":
        return [Tap(index, within(m, index, size), weight) for index, weight in taps]
    return [Tap(edge(index) if edge else index, None, weight) for index, weight in taps]


def _reflected(m: Steps, x: Array, low: float, high: float | Array) -> Array:
    """Return ``x`` reflected at ``low`` and ``high`` until it lies between them.

    The result is a triangle wave of ``x`` with period ``2 * (high - low)``; ``low`` if both ends
    are equal.
    """
    extent = high - low
    if not isinstance(extent, Array) and extent == 0:
        return x * 0 + low
    is_array = isinstance(extent, Array)
    length = m.op("Where", m.op("Equal", extent, 0), 1, extent) if is_array else extent
    distance = x - low
    distance = distance - m.op("Floor", distance / (2 * length)) * (2 * length)
    inside = (low + length) - m.op("Abs", distance - length)
    return m.op("Where", m.op("Equal", extent, 0), low, inside) if is_array else inside


@lowers("RoiAlign")
def roi_align(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the mean or maximum of samples in each cell of each box.

    Inputs are x [N, C, H, W], boxes [R, 4] as (x1, y1, x2, y2), and the image index of each box
    [R].
    """
    m = Steps(cx)
    x, boxes, numbers = (m.array(value) for value in node.inputs)
    height, width = (
        node.attributes.get_int("output_height", 1),
        node.attributes.get_int("output_width", 1),
    )
    samples = node.attributes.get_int("sampling_ratio", 0)
    if samples < 1:
        raise cx.refuse(
            "sampling_ratio=0, with which the number of samples depends on the boxes",
            "export the model with a sampling_ratio",
        )
    dtype = x.dtype
    computed_type = ir.DataType.FLOAT if dtype in NARROW else dtype
    x, boxes = x.cast(computed_type), boxes.cast(computed_type)
    sampler = Sampler(m, x, computed_type)
    if 0 in x.shape[2:]:
        raise cx.refuse("the image has no pixels")
    count = boxes.shape[0]
    rows, columns = height * samples, width * samples
    axes = _sampled(cx, node, boxes, (rows, columns))
    ys = axes[0].reshape(count, rows, 1).expand(count, rows, columns)
    xs = axes[1].reshape(count, 1, columns).expand(count, rows, columns)
    coordinates = [axis.reshape(count, rows * columns) for axis in (ys, xs)]
    numbers = numbers.cast(ir.DataType.INT64).reshape(count, 1)
    result = _pooled(m, sampler, numbers, coordinates, node.attributes.get_string("mode", "avg"))
    samples_by_cell = result.reshape(count, height, samples, width, samples, sampler.channels)
    op = "ReduceMax" if node.attributes.get_string("mode", "avg") == "max" else "ReduceMean"
    pooled_all = samples_by_cell.reduce(op, 2, 4).transpose(0, 3, 1, 2)
    m.set_output(node.outputs[0], pooled_all.cast(dtype))


def _sampled(
    cx: ProgramBuilder, node: ir.Node, boxes: Array, counts: tuple[int, int]
) -> list[Array]:
    """Return the sample positions of each box, [R, count], along the two axes of the image."""
    m = Steps(cx)
    attributes = node.attributes
    is_half_pixel = (
        attributes.get_string("coordinate_transformation_mode", _default_coordinates(cx))
        == "half_pixel"
    )
    scaled = boxes * attributes.get_float("spatial_scale", 1.0) - (0.5 if is_half_pixel else 0.0)
    axes = []
    for axis, count in enumerate(counts):
        start, end = (scaled.rows(i, i + 1, 1) for i in (1 - axis, 3 - axis))
        extent = end - start if is_half_pixel else m.op("Max", end - start, 1.0)
        steps = (np.arange(count) + 0.5) / count
        axes.append(start + extent * m.constant(steps.reshape(1, -1), boxes.dtype))
    return axes


def _default_coordinates(cx: ProgramBuilder) -> str:
    """Return the default coordinate mode; before opset 16 boxes were not shifted by half a
    pixel."""
    return "half_pixel" if cx.opset >= 16 else "output_half_pixel"


def _pooled(
    m: Steps, sampler: Sampler, numbers: Array, coordinates: list[Array], mode: str
) -> Array:
    """Return samples [R, P, C] of the images ``numbers`` at P positions for each of R boxes.

    A sample is the sum of four weighted pixels or, in mode "max", the largest of them. Positions
    more than a pixel outside of the image give 0.
    """
    outside: Array | None = None
    axes = []
    for coordinate, size in zip(coordinates, sampler.sizes, strict=True):
        is_outside = m.op("Or", m.op("Less", coordinate, -1.0), m.op("Greater", coordinate, size))
        outside = is_outside if outside is None else m.op("Or", outside, is_outside)
        inside = m.op("Min", m.op("Max", coordinate, 0.0), size - 1.0)
        axes.append([Tap(p, None, weight) for p, weight in around(m, inside, "linear")])
    shares = [sampler.weighted(numbers, taps) for taps in itertools.product(*axes)]
    result = shares[0]
    for share in shares[1:]:
        result = m.op("Max" if mode == "max" else "Add", result, share)
    assert outside is not None
    return m.op("Where", outside.reshape(*outside.shape, 1), 0.0, result)


@lowers("DeformConv")
def deform_conv(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Conv that reads each pixel of a window at an offset, times the mask if present.

    The sampled pixels are the columns of im2col, which are then multiplied by the filters.
    """
    m = Steps(cx)
    x, w, offset = (m.array(value) for value in node.inputs[:3])
    kernel = m.sizes(w)[2:]
    window = window_attributes(cx, node, kernel)
    group, offsets = node.attributes.get_int("group", 1), node.attributes.get_int("offset_group", 1)
    batch, channels, *sizes = m.sizes(x)
    result_sizes, rank, taps = m.sizes(offset)[2:], len(kernel), math.prod(kernel)
    if channels % group or channels % offsets or 0 in (*sizes, *result_sizes):
        raise cx.refuse("the groups do not divide the channels, or the image is empty")
    computed_type = ir.DataType.FLOAT if x.dtype in NARROW else x.dtype
    dtype, x, w = x.dtype, x.cast(computed_type), w.cast(computed_type)
    count, channels_per_offset = math.prod(result_sizes), channels // offsets
    images = x.reshape(batch * offsets, channels_per_offset, *sizes)
    sampler = Sampler(m, images, computed_type)
    offsets_of_taps = offset.cast(computed_type).reshape(batch * offsets, taps, rank, count)
    axes = _deformed_taps(offsets_of_taps, window, kernel, result_sizes, sizes)
    numbers = m.constant(np.arange(batch * offsets).reshape(-1, 1))
    sampled = sampler.total(numbers, axes)
    mask = cx.input(node, 4)
    if mask is not None:
        sampled = sampled * m.array(mask).cast(computed_type).reshape(
            batch * offsets, taps * count, 1
        )
    columns = sampled.reshape(batch, offsets, taps, count, channels_per_offset)
    columns = columns.transpose(0, 1, 4, 2, 3)
    columns = columns.reshape(batch, group, channels // group, taps, count)
    filters = m.sizes(w)[0]
    weights = w.reshape(group, filters // group, channels // group, taps)
    result = m.dot("ngckp,gmck->ngmp", columns, weights).reshape(batch, filters, *result_sizes)
    bias = cx.input(node, 3)
    if bias is not None:
        result = result + m.array(bias).cast(computed_type).reshape(1, filters, *(1,) * rank)
    m.set_output(node.outputs[0], result.cast(dtype))


def _deformed_taps(
    offsets: Array,
    window: Mapping[str, object],
    kernel: tuple[int, ...],
    result_sizes: tuple[int, ...],
    sizes: Sequence[int],
) -> list[list[Tap]]:
    """Return, for each axis, the two pixels around each position that a DeformConv reads.

    ``offsets`` are [N, taps, rank, places]; the positions of a tap at all places are [N, taps *
    places]. Pixels outside of the image, which has ``sizes``, count as 0.
    """
    m, (batch, taps, rank, count) = offsets.m, offsets.m.sizes(offsets)
    axes = []
    for axis in range(rank):
        start = m.constant(_window_places(window, kernel, result_sizes, axis), offsets.dtype)
        position = offsets.rows(axis, axis + 1, 2).reshape(batch, taps, count) + start
        position = position.reshape(batch, taps * count)
        axes.append(
            [
                Tap(pixel, within(m, pixel, sizes[axis]), weight)
                for pixel, weight in around(m, position, "linear")
            ]
        )
    return axes


def _window_places(
    window: Mapping[str, object], kernel: tuple[int, ...], out: tuple[int, ...], axis: int
) -> np.ndarray:
    """Return the position along ``axis`` of each window pixel before its offset: [taps, places]."""
    strides, dilations, pads = (window[name] for name in ("strides", "dilations", "pads"))
    assert isinstance(strides, tuple)
    assert isinstance(dilations, tuple)
    assert isinstance(pads, tuple)
    tap = np.indices(kernel)[axis].reshape(-1, 1) * dilations[axis]
    starts = np.indices(out)[axis].reshape(1, -1) * strides[axis] - pads[axis]
    return np.asarray(tap + starts)
