"""Readers of operators that resize and resample images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads

_COORDINATES = {
    "STRICT_ALIGN_CORNERS": "align_corners",
    "ALIGN_CORNERS": "align_corners",
    "DEFAULT": "asymmetric",
    "UNALIGN_CORNERS": "half_pixel",
}
"""The ONNX coordinate transformation with the sample points of a mode; OFFSET_CORNERS has none."""


def _resized(
    call: Call, axes: Sequence[int], sizes: ir.Value, mode: str, coordinates: str
) -> ir.Value:
    """Return ``x`` with its last axes ``axes`` resized to ``sizes`` by an ONNX Resize."""
    nearest = "floor" if mode == "nearest" else None
    rank = call.rank(call.x)
    if list(axes) != list(range(rank)):
        kept = call.op("Shape", call.x, end=rank - len(axes))
        sizes = call.op("Concat", kept, sizes, axis=0)
    return call.op(
        "Resize",
        call.x,
        None,
        None,
        sizes,
        mode=mode,
        coordinate_transformation_mode=coordinates,
        nearest_mode=nearest,
    )


def _by_mode(call: Call, axes: Sequence[int], sizes: ir.Value, sampling: str) -> ir.Value:
    """Return ``x`` with ``axes`` resized by linear interpolation at the points of ``sampling``.

    ONNX's Resize computes it, unless it lacks the points.
    """
    numbers = None if sizes.const_value is None else sizes.const_value.numpy().tolist()
    may_be_one = numbers is None or 1 in numbers
    if sampling == "OFFSET_CORNERS" or (sampling == "ALIGN_CORNERS" and may_be_one):
        return _by_matrices(call, axes, numbers, sampling)
    if sampling not in _COORDINATES:
        raise call.refused(f"there is no sampling mode {sampling!r}")
    return _resized(call, axes, sizes, "linear", _COORDINATES[sampling])


def _by_matrices(
    call: Call, axes: Sequence[int], new_sizes: Sequence[int] | None, sampling: str
) -> ir.Value:
    """Return ``x`` interpolated along each axis by a product with a matrix of weights.

    ONNX lacks the points of OFFSET_CORNERS, and those of ALIGN_CORNERS for a size of 1. Column n of
    the matrix (old, new) has the weights of the two elements around sample point n.
    """
    result, rank = call.x, call.rank(call.x)
    old_sizes = call.sizes(call.x, list(axes))
    if new_sizes is None or old_sizes is None or result.dtype is None:
        raise call.refused(f"of open sizes, ONNX lacks the points of {sampling}")
    for axis, old, new in zip(axes, old_sizes, new_sizes, strict=True):
        points = _points(old, new, sampling)
        low = np.floor(points).astype(int)
        high, part = np.minimum(low + 1, old - 1), points - low
        matrix = np.zeros((old, new))
        np.add.at(matrix, (low, np.arange(new)), 1 - part)
        np.add.at(matrix, (high, np.arange(new)), part)
        weights = call.scope.shared.constant(matrix.astype(result.dtype.numpy()))
        perm = [*(a for a in range(rank) if a != axis), axis]
        product = call.op("MatMul", call.transposed(result, perm), weights)
        result = call.transposed(product, [perm.index(a) for a in range(rank)])
    return result


def _points(old: int, new: int, sampling: str) -> np.ndarray:
    """Return ``new`` sample points as fractional indices into ``old`` elements."""
    steps = np.arange(new, dtype=np.float64)
    if sampling == "OFFSET_CORNERS":
        delta = max(1, old - 1) / new
        points = 0.5 * delta + steps * delta
    elif new == 1:
        points = np.array([(old - 1) / 2])
    else:
        points = steps * (old - 1) / (new - 1)
    clipped: np.ndarray = np.clip(points, 0, old - 1)
    return clipped


def _image_axes(call: Call) -> list[int]:
    """Return the last two axes of ``x``."""
    rank = call.rank(call.x)
    return [rank - 2, rank - 1]


def _targets(call: Call) -> ir.Value:
    """Return the parameters target_size_height and target_size_width as one vector."""
    names = ("target_size_height", "target_size_width")
    return call.ints([call.integer(name, 1) for name in names])


@reads("resize_bilinear")
def _resize_bilinear(call: Call) -> ir.Value:
    """Return ``x`` with its last two dims resized by linear interpolation."""
    mode = call.word("sampling_mode", "DEFAULT")
    return _by_mode(call, _image_axes(call), _targets(call), mode)


@reads("resize_nearest_neighbor")
def _resize_nearest(call: Call) -> ir.Value:
    """Return ``x`` with its last two axes resized: element i is the old one at floor(i * old /
    new).
    """
    return _resized(call, _image_axes(call), _targets(call), "nearest", "asymmetric")


@reads("resize")
def _resize(call: Call) -> ir.Value:
    """Return ``x`` with its last ``resized_dims`` dims resized; a size of 0 keeps that of ``x``."""
    count, rank = call.integer("resized_dims"), call.rank(call.x)
    if not 0 < count <= rank:
        raise call.refused(f"resized_dims {count} does not fit rank {rank}")
    axes = list(range(rank - count, rank))
    constant = call.constant("shape")
    if constant is None:
        sizes = call.op("Slice", call.i64("shape"), call.ints([-count]), call.ints([2**63 - 1]))
    else:
        numbers = np.asarray(constant.value).reshape(-1)[-count:].tolist()
        own = call.sizes(call.x, axes)
        if 0 in numbers and own is None:
            parts = [
                call.ints([n]) if n else call.builder.size(call.x, axis)
                for n, axis in zip(numbers, axes, strict=True)
            ]
            sizes = call.op("Concat", *parts, axis=0)
        else:
            sizes = call.ints([n or (own or numbers)[i] for i, n in enumerate(numbers)])
    mode, sampling = (
        call.word("interpolation_mode", "LINEAR"),
        call.word("sampling_mode", "DEFAULT"),
    )
    if mode == "LINEAR":
        return _by_mode(call, axes, sizes, sampling)
    if mode != "NEAREST_NEIGHBOR" or sampling != "DEFAULT":
        raise call.refused(f"Core ML does not say how {mode} rounds the points of {sampling}")
    return _resized(call, axes, sizes, "nearest", "asymmetric")


def _scaled_sizes(call: Call) -> ir.Value:
    """Return the sizes of the last two dims times their scale factors, rounded down."""
    axes = _image_axes(call)
    factors = [call.number(f"scale_factor_{name}", 1) for name in ("height", "width")]
    sizes = call.sizes(call.x, axes)
    if sizes is not None:
        return call.ints(
            [int(np.floor(s * np.float32(f))) for s, f in zip(sizes, factors, strict=True)]
        )
    if all(factor == int(factor) for factor in factors):
        own = call.op("Shape", call.x, start=axes[0])
        return call.op("Mul", own, call.ints([int(factor) for factor in factors]))
    own = call.op("Cast", call.op("Shape", call.x, start=axes[0]), to=int(ir.DataType.FLOAT))
    scaled = call.op("Mul", own, call.scope.shared.constant(np.array(factors, np.float32)))
    return call.op("Cast", call.op("Floor", scaled), to=int(ir.DataType.INT64))


@reads("upsample_nearest_neighbor")
def _upsample_nearest(call: Call) -> ir.Value:
    """Return ``x`` with its last two axes scaled: element i is the old one at floor(i *
    old / new).
    """
    return _resized(call, _image_axes(call), _scaled_sizes(call), "nearest", "asymmetric")


@reads("upsample_bilinear")
def _upsample_bilinear(call: Call) -> ir.Value:
    """Return ``x`` with its last two dims scaled by linear interpolation."""
    aligned = call.flag("align_corners", True)
    centred = call.flag("half_pixel_centers", not aligned)
    if aligned and centred:
        raise call.refused("it asks for aligned corners and for half pixels")
    coordinates = "align_corners" if aligned else "half_pixel" if centred else "asymmetric"
    return _resized(call, _image_axes(call), _scaled_sizes(call), "linear", coordinates)


_PADDINGS = {
    "constant": ("zeros", None),
    "border": ("border", None),
    "reflection": ("reflection", True),
    "symmetric": ("reflection", False),
}
"""The padding mode of GridSample, and the ``align_corners`` at which it means the same."""


@reads("resample")
def _resample(call: Call) -> ir.Value:
    """Return the images ``x`` sampled at ``coordinates``: an ONNX GridSample.

    GridSample pads with 0. Another padding value is subtracted from ``x`` and added to the result.
    """
    padding, aligned = call.word("padding_mode"), call.flag("align_corners")
    mode, needed = _PADDINGS.get(padding, ("", None))
    if not mode or (needed is not None and needed != aligned):
        raise call.refused(f"ONNX has no padding {padding!r} with align_corners {aligned}")
    sampling = {"bilinear": "linear", "nearest": "nearest"}.get(call.word("sampling_mode"))
    if sampling is None:
        raise call.refused(f"there is no sampling mode {call.word('sampling_mode')!r}")
    x, grid = call.x, _normalized(call, call.value("coordinates"), aligned)
    fill = call.number("padding_value", 0) if mode == "zeros" else 0.0
    if fill:
        x = call.op("Sub", x, call.filled(fill, x))
    result = call.op(
        "GridSample", x, grid, mode=sampling, padding_mode=mode, align_corners=int(aligned)
    )
    return call.op("Add", result, call.filled(fill, result)) if fill else result


def _normalized(call: Call, grid: ir.Value, aligned: bool) -> ir.Value:
    """Return coordinates ``grid`` as GridSample needs them: from -1 to 1, in the type of ``x``."""
    if grid.dtype != call.x.dtype and call.x.dtype is not None:
        grid = call.builder.cast(grid, call.x.dtype)
    kind = call.word("coordinates_mode")
    if kind == "normalized_minus_one_to_one":
        return grid
    if kind == "normalized_zero_to_one":
        doubled = call.op("Mul", grid, call.filled(2, grid))
        return call.op("Sub", doubled, call.filled(1, grid))
    sizes = call.sizes(call.x, [3, 2])
    if kind != "unnormalized" or sizes is None or call.x.dtype is None:
        raise call.refused(f"ONNX has no coordinates of the kind {kind!r} for open sizes")
    dtype = call.x.dtype.numpy()
    if aligned:
        factors, shifts = [2 / max(size - 1, 1) for size in sizes], [-1.0, -1.0]
    else:
        factors, shifts = [2 / size for size in sizes], [1 / size - 1 for size in sizes]
    scaled = call.op("Mul", grid, call.scope.shared.constant(np.array(factors, dtype)))
    return call.op("Add", scaled, call.scope.shared.constant(np.array(shifts, dtype)))


@reads("affine")
def _affine(call: Call) -> ir.Value:
    """Return the images ``x`` transformed by an affine matrix (2, 3), one for each image or for
    all.
    """
    modes = [call.word(name) for name in ("sampling_mode", "padding_mode", "coordinates_mode")]
    if modes != ["bilinear", "constant", "normalized_minus_one_to_one"]:
        raise call.refused(f"Core ML documents no modes {modes}")
    if not call.flag("align_corners") or call.number("padding_value", 0):
        raise call.refused("Core ML documents only align_corners=True and padding_value=0")
    batch = call.builder.size(call.x, 0)
    matrices = call.op("Reshape", call.like("transform_matrix", call.x), call.ints([-1, 2, 3]))
    shape = call.op("Concat", batch, call.ints([2, 3]), axis=0)
    matrices = call.op("Expand", matrices, shape)
    channels = call.builder.size(call.x, 1)
    out_sizes = call.ints([call.integer("output_height"), call.integer("output_width")])
    size = call.op("Concat", batch, channels, out_sizes, axis=0)
    grid = call.op("AffineGrid", matrices, size, align_corners=1)
    return call.op("GridSample", call.x, grid, mode="linear", padding_mode="zeros", align_corners=1)
