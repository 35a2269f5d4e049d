"""Rows for GridSample and TensorScatter."""

from __future__ import annotations

from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Dims, Refused, Val

MODES = {"linear": "bilinear", "bilinear": "bilinear", "nearest": "nearest"}
PADDING = {"zeros": "constant", "border": "border", "reflection": "reflection"}


@writes("GridSample")
def grid_sample(c: Call) -> None:
    """Write resample of images at coordinates from -1 to 1.

    The coordinates are float32: rounded to float16, they would be off by up to 1/8 pixel of 512.
    """
    x, mode = c.x(), c.attribute("mode")
    if x.rank != 4 or mode not in MODES:
        raise Refused("Core ML resamples images, bilinear or nearest")
    if c.attribute("padding_mode") == "reflection" and not c.attribute("align_corners"):
        raise Refused("Core ML reflects about centres of pixels, and ONNX here about their edges")
    c.done(
        c.write(
            "resample",
            x=x,
            coordinates=c.x(1, Element.FLOAT32),
            sampling_mode=MODES[mode],
            padding_mode=PADDING[c.attribute("padding_mode")],
            padding_value=0.0,
            coordinates_mode="normalized_minus_one_to_one",
            align_corners=bool(c.attribute("align_corners")),
        )
    )


@writes("TensorScatter")
def tensor_scatter(c: Call) -> None:
    """Write the cache with the updates at positions ``start`` to ``start + count - 1`` of the axis.

    Each position p of the cache reads update ``p - start`` (modulo the size if circular), and a
    selection keeps the cache where that is not an index of the updates.
    """
    cache, updates = c.x(0), c.x(1)
    axis = int(c.attribute("axis")) % cache.rank
    size, count = cache.dims[axis], updates.dims[axis]
    if size is None or count is None or None in cache.dims:
        raise Refused("its cache has open sizes")
    batch = cache.dims[0]
    assert batch is not None
    places = np.arange(size, dtype=np.int32).reshape([-1] + [1] * (cache.rank - 1 - axis))
    start: Val = c.w.constant(np.zeros((batch,), np.int32))
    if c.has(2):
        start = c.x(2, Element.INT32)
    start = c.expand(start, range(1, cache.rank))
    offset = c.op("sub", c.w.constant(places), start)
    if c.attribute("mode") == "circular":
        offset = c.op("mod", offset, size)
    low = c.op("greater_equal", offset, 0, element=Element.BOOL)
    inside = c.op("logical_and", low, c.op("less", offset, count, element=Element.BOOL))
    clamped = c.op("minimum", c.op("maximum", offset, 0), count - 1)
    indices = _tiled(c, clamped, cache.dims)
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    label = f"{c.node.outputs[0].name}_rows"
    rows = c.w.op(
        "gather_along_axis",
        cache.element,
        cache.dims,
        name=label,
        x=updates,
        indices=indices,
        axis=axis,
        **more,
    )
    c.done(c.select(inside, rows, cache, cache.element))


def _tiled(c: Call, x: Val, dims: Dims) -> Val:
    """Return ``x``, with size 1 or that of ``dims`` along each axis, repeated to ``dims``."""
    counts = [1 if old == new else new or 1 for old, new in zip(x.dims, dims, strict=True)]
    return c.w.op("tile", x.element, dims, x=x, reps=counts)
