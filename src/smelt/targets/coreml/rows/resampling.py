"""Row for Resize to constant sizes: one MIL operation, or for each axis a weighted sum of gathers.

A product by a matrix of weights is not used: it multiplies elements by 0, so one infinite element
would make a whole row NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.program.resampling import CROP, Sampling, Taps, taps
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val

NATIVE = {
    "align_corners": "STRICT_ALIGN_CORNERS",
    "asymmetric": "DEFAULT",
    "half_pixel": "UNALIGN_CORNERS",
    "half_pixel_symmetric": "UNALIGN_CORNERS",
    "pytorch_half_pixel": "UNALIGN_CORNERS",
}
"""The sampling mode of resize_bilinear that has the sample points of an ONNX coordinate mode.

It holds if the scale is the ratio of the sizes."""


@writes("Resize")
def resize(c: Call) -> None:
    """Write resize_bilinear or upsample_nearest_neighbor if it has the same sample points, else
    resample axis by axis.

    Raises Refused if an axis of open size is resized.
    """
    x, dims = c.x(), c.out_dims()
    steps: dict[int, Sampling] = {}
    for axis, scale, start, end in _axes(c, x):
        size, count = x.dims[axis], dims[axis]
        kept = scale in (None, 1.0) and size == count and (size is not None or scale == 1.0)
        sampling = _sampling(c, scale, start, end)
        if kept and sampling.coordinates != CROP:
            continue
        if size is None or count is None:
            raise Refused("it resizes an axis of open size", "bind the size: --dim NAME=64")
        _refuse_fractional_corners(sampling, size, count)
        steps[axis] = sampling
    mode = _native(x, dims, steps)
    if mode is not None:
        c.done(
            c.write(
                "resize_bilinear",
                x=x,
                target_size_height=dims[-2],
                target_size_width=dims[-1],
                sampling_mode=mode,
            )
        )
        return
    factors = _factors(x, dims, steps)
    if factors is not None:
        height, width = (np.float32(each) for each in factors)
        c.done(
            c.write(
                "upsample_nearest_neighbor",
                x=x,
                scale_factor_height=height,
                scale_factor_width=width,
            )
        )
        return
    for axis, sampling in steps.items():
        count = dims[axis]
        assert count is not None
        x = _resampled(c, x, axis, count, sampling)
    c.done(x)


def _axes(c: Call, x: Val) -> list[tuple[int, float | None, float, float]]:
    """Return ``(axis, scale, start, end)`` for each axis that may change.

    The scale is None if it is the ratio of the sizes. ``start`` and ``end`` are the crop region, in
    parts of the axis; 0 and 1 without a crop.
    """
    listed = c.attribute("axes")
    axes = [axis % x.rank for axis in listed] if listed is not None else list(range(x.rank))
    scales, roi = c.array(2), c.array(1)
    if c.has(2) and scales is None and c.array(3) is None:
        raise Refused("its scales are computed; Core ML needs constants")
    is_crop = c.attribute("coordinate_transformation_mode") == CROP
    if is_crop and roi is None:
        raise Refused("its region is computed; Core ML needs a constant")
    given = scales is not None and scales.size > 0
    common = None if given else _ratio(c, x, axes)
    found = []
    for number, axis in enumerate(axes):
        scale = float(scales[number]) if given and scales is not None else common
        start, end = 0.0, 1.0
        if is_crop and roi is not None:
            start, end = float(roi[number]), float(roi[number + len(axes)])
        found.append((axis, scale, start, end))
    return found


def _refuse_fractional_corners(sampling: Sampling, size: int, count: int) -> None:
    """Raise Refused if corners are aligned, and ``scale * size`` is not the whole number ``count``.

    ONNX's reference then aligns with the fractional size, ONNX Runtime and Core ML with ``count``.
    """
    if sampling.coordinates != "align_corners" or sampling.scale is None:
        return
    if abs(sampling.scale * size - count) > 1e-5 * count:
        raise Refused(
            f"its corners are aligned, and its scale makes {sampling.scale * size:.6g} rows of"
            f" {size}: runtimes of ONNX disagree on the points",
            "give it sizes in place of scales",
        )


def _native(x: Val, dims: Sequence[int | None], steps: dict[int, Sampling]) -> str | None:
    """Return the sampling mode with which resize_bilinear computes all steps; None if it cannot."""
    if not steps or not x.is_float or x.rank < 3 or min(steps) < x.rank - 2:
        return None
    if dims[-1] is None or dims[-2] is None:
        return None
    modes = {_native_mode(each, x.dims[axis], dims[axis]) for axis, each in steps.items()}
    return modes.pop() if len(modes) == 1 else None


def _native_mode(sampling: Sampling, size: int | None, count: int | None) -> str | None:
    """Return the sampling mode of resize_bilinear for one axis; None if it has other points."""
    if sampling.mode != "linear" or size is None or count is None:
        return None
    if sampling.antialias and count < size:
        return None
    if sampling.scale is not None and abs(sampling.scale * size - count) > 1e-6 * count:
        return None
    if sampling.coordinates in ("pytorch_half_pixel", "align_corners") and count == 1:
        return None
    return NATIVE.get(sampling.coordinates)


def _factors(x: Val, dims: Sequence[int | None], steps: dict[int, Sampling]) -> list[int] | None:
    """Return how often rows and columns are repeated; None if a step does anything else."""
    if not steps or not x.is_float or x.rank < 3 or min(steps) < x.rank - 2:
        return None
    factors = [1, 1]
    for axis, sampling in steps.items():
        size, count = x.dims[axis], dims[axis]
        if sampling.mode != "nearest" or not size or count is None or count % size:
            return None
        found = taps(sampling, size, count)
        repeated = np.repeat(np.arange(size), count // size)
        if found.outside.any() or not np.array_equal(found.rows[:, 0], repeated):
            return None
        factors[axis - x.rank] = count // size
    return factors


def _ratio(c: Call, x: Val, axes: Sequence[int]) -> float | None:
    """Return the scale of all axes if the node keeps the aspect ratio, None if it does not."""
    policy = c.node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return None
    sizes = c.fixed_ints(3, "sizes")
    assert sizes is not None
    ratios = [size / (x.dims[axis] or 1) for size, axis in zip(sizes, axes, strict=True)]
    return min(ratios) if policy == "not_larger" else max(ratios)


def _sampling(c: Call, scale: float | None, start: float, end: float) -> Sampling:
    """Return the attributes of the node as a ``Sampling`` for one axis."""
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
    """Return ``x`` resampled to ``count`` elements along ``axis``.

    A point outside of a crop region gives the extrapolation value.
    """
    size = x.dims[axis]
    assert size is not None
    points = taps(sampling, size, count)
    if sampling.mode == "nearest" and not points.outside.any():
        return take(c, x, points.rows[:, 0], axis)
    if not x.is_float:
        raise Refused("interpolated integers are rounded by ONNX Runtime only", "cast to float32")
    result = _weighted(c, x, axis, points)
    if not points.outside.any():
        return result
    outside = c.w.constant(_column(points.outside, x.rank - axis))
    return c.select(outside, sampling.extrapolation, result, x.element)


def _weighted(c: Call, x: Val, axis: int, points: Taps) -> Val:
    """Return ``sum_k x[rows[:, k]] * weights[:, k]`` along ``axis``.

    ``points.rows`` has the indices that each element of the result reads, (count, width). One
    gather reads all of them.
    """
    count, width = points.rows.shape
    rows = take(c, x, points.rows.T.reshape(-1), axis)
    weights = _column(points.weights.T.reshape(-1), x.rank - axis).astype(np.float32)
    scaled = c.op("mul", rows, c.constant(weights, x.element, "weights"))
    if width == 1:
        return scaled
    dims = (*x.dims[:axis], count, *x.dims[axis + 1 :])
    parts = c.w.ops("split", [(x.element, dims)] * width, x=scaled, num_splits=width, axis=axis)
    total = parts[0]
    for part in parts[1:]:
        total = c.op("add", total, part)
    return total


def _column(array: np.ndarray, rank: int) -> np.ndarray:
    """Return the vector ``array`` along the first of ``rank`` axes; the others have size 1."""
    return array.reshape([-1] + [1] * (rank - 1))
