"""Resize to constant sizes: a gather or a product by a constant matrix for each axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.program.resampling import CROP, Sampling, taps
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val


@writes("Resize")
def resize(c: Call) -> None:
    """Write one step an axis whose size changes; axes of open sizes must stay as they are."""
    x, dims = c.x(), c.out_dims()
    listed = c.attribute("axes")
    axes = [axis % x.rank for axis in listed] if listed is not None else list(range(x.rank))
    scales, roi = c.array(2), c.array(1)
    if c.has(2) and scales is None and c.array(3) is None:
        raise Refused("its scales are computed; Core ML needs constants")
    mode = c.attribute("coordinate_transformation_mode")
    common = None if scales is not None and scales.size else _ratio(c, x, axes)
    if mode == CROP and roi is None:
        raise Refused("its region is computed; Core ML needs a constant")
    for number, axis in enumerate(axes):
        size, count = x.dims[axis], dims[axis]
        scale = float(scales[number]) if scales is not None and scales.size else None
        if (scale in (None, 1.0) and size == count and mode != CROP) and (
            size is not None or scale == 1.0
        ):
            continue
        if size is None or count is None:
            raise Refused("it resizes an axis of open size", "bind the size: --dim NAME=64")
        start, end = 0.0, 1.0
        if mode == CROP and roi is not None:
            start, end = float(roi[number]), float(roi[number + len(axes)])
        ratio = scale if scale is not None else common
        x = _resampled(c, x, axis, count, _sampling(c, ratio, start, end))
    c.done(x)


def _ratio(c: Call, x: Val, axes: Sequence[int]) -> float | None:
    """Return the common scale of a policy that keeps the aspect ratio; None for plain sizes."""
    policy = c.node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return None
    wanted = c.fixed_ints(3, "sizes")
    assert wanted is not None
    ratios = [size / (x.dims[each] or 1) for size, each in zip(wanted, axes, strict=True)]
    return min(ratios) if policy == "not_larger" else max(ratios)


def _sampling(c: Call, scale: float | None, start: float, end: float) -> Sampling:
    """Return the sampling that the attributes ask for."""
    return Sampling(
        mode=c.attribute("mode"),
        coordinates=c.attribute("coordinate_transformation_mode"),
        nearest=c.attribute("nearest_mode"),
        cubic=float(c.attribute("cubic_coeff_a")),
        antialias=bool(c.node.attributes.get_int("antialias", 0)),
        exclude_outside=bool(c.attribute("exclude_outside")),
        scale=scale,
        start=start,
        end=end,
        extrapolation=float(c.attribute("extrapolation_value")),
    )


def _resampled(c: Call, x: Val, axis: int, count: int, sampling: Sampling) -> Val:
    """Return ``x`` with ``count`` rows along ``axis``."""
    size = x.dims[axis]
    assert size is not None
    found = taps(sampling, size, count)
    if sampling.mode == "nearest" and not found.outside.any():
        return take(c, x, found.rows[:, 0], axis)
    if not x.is_float:
        raise Refused("interpolated integers are rounded by ONNX Runtime only", "cast to float32")
    matrix = np.zeros((count, size))
    for tap in range(found.rows.shape[1]):
        np.add.at(matrix, (np.arange(count), found.rows[:, tap]), found.weights[:, tap])
    matrix[found.outside] = 0
    weight = c.constant(matrix.astype(np.float32), x.element, "resize")
    dims = (*x.dims[:axis], count, *x.dims[axis + 1 :])
    if axis == x.rank - 1:
        result = _product(c, x, weight, dims, across=True)
    elif axis == x.rank - 2:
        result = _product(c, weight, x, dims, across=False)
    else:
        perm = [each for each in range(x.rank) if each != axis] + [axis]
        moved = c.transpose(x, perm)
        product = _product(c, moved, weight, (*moved.dims[:-1], count), across=True)
        result = c.transpose(product, [perm.index(each) for each in range(x.rank)])
    if found.outside.any() and sampling.extrapolation:
        added = np.where(found.outside, sampling.extrapolation, 0).astype(np.float32)
        column = added.reshape([-1] + [1] * (x.rank - 1 - axis))
        result = c.op("add", result, c.constant(column, x.element, "outside"))
    return result


def _product(c: Call, x: Val, y: Val, dims: Sequence[int | None], *, across: bool) -> Val:
    """Return a matrix product, with ``y`` transposed if ``across``."""
    kind = x.element
    return c.w.op("matmul", kind, tuple(dims), x=x, y=y, transpose_x=False, transpose_y=across)
