"""Row for RoiAlign: each region is sampled at a grid of points and averaged.

A region is (x0, y0, x1, y1) in a feature map, and has the index of its image in the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val


@writes("RoiAlign")
def roi_align(c: Call) -> None:
    """Write bilinear samples, ``sampling_ratio`` squared for each element, then their averages.

    Coordinates are computed in float32.
    """
    x = c.x()
    ratio = int(c.attribute("sampling_ratio"))
    height, width = x.dims[2], x.dims[3]
    if height is None or width is None:
        raise Refused("its image has an open height or width")
    if not ratio:
        raise Refused("its number of samples depends on the regions", "give sampling_ratio")
    if c.attribute("mode") != "avg":
        raise Refused("ONNX Runtime takes maxima of weighted corners, Core ML of samples")
    rows = _points(c, 1, int(c.attribute("output_height")), ratio)
    columns = _points(c, 0, int(c.attribute("output_width")), ratio)
    sampled = _sampled(c, _images(c, x), rows, columns, (height, width))
    if ratio > 1:
        sampled = c.w.op(
            "avg_pool",
            x.element,
            c.out_dims(),
            x=sampled,
            kernel_sizes=[ratio, ratio],
            strides=[ratio, ratio],
            pad_type="valid",
            pad=[0, 0, 0, 0],
            exclude_padding_from_average=False,
            ceil_mode=False,
        )
    c.done(sampled)


def _images(c: Call, x: Val) -> Val:
    """Return the image of each region, (regions, channels, height, width)."""
    indices = c.x(2, Element.INT32)
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    dims = (indices.dims[0], *x.dims[1:])
    return c.w.op("gather", x.element, dims, x=x, indices=indices, axis=0, batch_dims=0, **more)


def _points(c: Call, first: int, count: int, ratio: int) -> Val:
    """Return the sample coordinates along one axis in pixels, (regions, count * ratio).

    ``first`` is the column of the region's start: 0 for x, 1 for y. Sample k is at
    ``start + length * (k + 0.5) / (count * ratio)``.
    """
    regions = c.x(1, Element.FLOAT32)
    dims = (regions.dims[0], 1)
    corners = c.w.ops("split", [(Element.FLOAT32, dims)] * 4, x=regions, num_splits=4, axis=1)
    scale = float(c.attribute("spatial_scale"))
    start, end = (c.op("mul", corners[place], scale) for place in (first, first + 2))
    if c.attribute("coordinate_transformation_mode") == "half_pixel":
        start, end = c.op("sub", start, 0.5), c.op("sub", end, 0.5)
        length = c.op("sub", end, start)
    else:
        length = c.op("maximum", c.op("sub", end, start), 1.0)
    parts = (np.arange(count * ratio, dtype=np.float32) + 0.5) / np.float32(count * ratio)
    return c.op("add", start, c.op("mul", length, c.w.constant(parts)))


def _sampled(c: Call, images: Val, rows: Val, columns: Val, sizes: tuple[int, int]) -> Val:
    """Return each image sampled at all pairs of ``rows`` and ``columns``, bilinearly.

    Points are clamped to the image. Those more than one pixel outside give 0, as in ONNX.
    ``sizes`` are height and width.
    """
    count = rows.dims[1], columns.dims[1]
    zeros = c.w.constant(np.zeros((1, *(each or 0 for each in count), 1), np.float32))
    grid, inside = [], []
    for points, axis, size in ((columns, [1, 3], sizes[1]), (rows, [2, 3], sizes[0])):
        near = [
            c.op(op, points, limit, element=Element.BOOL)
            for op, limit in (("greater_equal", -1.0), ("less_equal", float(size)))
        ]
        inside.append(c.expand(c.op("logical_and", *near), [1, axis[0] + 1]))
        within = c.op("minimum", c.op("maximum", points, 0.0), float(size - 1))
        scaled = c.op("sub", c.op("mul", within, 2 / max(size - 1, 1)), 1.0)
        grid.append(c.op("add", c.expand(scaled, axis), zeros))
    dims = (*grid[0].dims[:-1], 2)
    sampled = c.w.op(
        "resample",
        images.element,
        (*images.dims[:2], *count),
        x=images,
        coordinates=c.w.op("concat", Element.FLOAT32, dims, values=grid, axis=3, interleave=False),
        sampling_mode="bilinear",
        padding_mode="border",
        padding_value=0.0,
        coordinates_mode="normalized_minus_one_to_one",
        align_corners=True,
    )
    return c.select(c.op("logical_and", *inside), sampled, 0.0, images.element)
