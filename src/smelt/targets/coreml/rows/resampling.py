"""Resize to constant sizes: one operation for images, else a gather or a sum of gathers an axis.

A product by a matrix of weights would multiply each row by every element, so one infinite element
would make the whole row NaN.
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
"""The sampling mode of resize_bilinear for the points of ONNX, where sizes imply the scale."""


@writes("Resize")
def resize(c: Call) -> None:
    """Write resize_bilinear or upsample_nearest_neighbor if it has the points of all resized axes,
    else a step an axis.

    Axes of open sizes must stay as they are.
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
    """Return the axes that may change, each with its scale and its region; None for the scale
    that the sizes imply."""
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
    """Raise Refused for aligned corners and a scale that gives a fraction of a row.

    ONNX's reference counts the fraction, and ONNX Runtime and Core ML count whole rows.
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
    """Return the sampling mode of resize_bilinear for one axis; None if it lacks the points."""
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
    result = _weighted(c, x, axis, found)
    if not found.outside.any():
        return result
    outside = c.w.constant(_column(found.outside, x.rank - axis))
    return c.select(outside, sampling.extrapolation, result, x.element)


def _weighted(c: Call, x: Val, axis: int, found: Taps) -> Val:
    """Return the sum over all taps of gathered rows times their weights."""
    count, width = found.rows.shape
    rows = take(c, x, found.rows.T.reshape(-1), axis)
    weights = _column(found.weights.T.reshape(-1), x.rank - axis).astype(np.float32)
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
    """Return a vector along the first of ``rank`` axes."""
    return array.reshape([-1] + [1] * (rank - 1))
