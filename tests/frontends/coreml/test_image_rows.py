"""MIL operators that resize and sample images: read and run, they agree with NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from frontends.coreml.rows import F, I, Row, Rows, f

ROWS = Rows()
row = ROWS.add


# Images.
def grid(old: int, new: int, mode: str) -> np.ndarray:
    """The points of a sampling mode, as MIL's documentation computes them."""
    steps = np.arange(new)
    if mode.endswith("ALIGN_CORNERS") and mode != "UNALIGN_CORNERS":
        points = steps * (old - 1) / max(new - 1, 1)
        points = np.array([(old - 1) / 2]) if mode == "ALIGN_CORNERS" and new == 1 else points
    elif mode == "DEFAULT":
        points = steps * ((old - old / new) / max(new - 1, 1))
    elif mode == "OFFSET_CORNERS":
        delta = max(1, old - 1) / new
        points = 0.5 * delta + steps * delta
    else:
        points = steps * (old / new) + 0.5 * old / new - 0.5
    return np.clip(points, 0, old - 1)


def linear(x: np.ndarray, axis: int, points: np.ndarray) -> np.ndarray:
    """Linear interpolation along an axis."""
    low = np.floor(points).astype(int)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    part = (points - low).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return x.take(low, axis) * (1 - part) + x.take(high, axis) * part


def bilinear(x: np.ndarray, size: tuple[int, int], mode: str) -> np.ndarray:
    """Linear interpolation of the last two dims."""
    for axis, new in zip((-2, -1), size, strict=True):
        x = linear(x, x.ndim + axis, grid(x.shape[axis], new, mode))
    return x


def nearest(x: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Element floor(i * old / new) of the last two dims."""
    h, w = (
        [n * old // new for n in range(new)] for old, new in zip(x.shape[-2:], size, strict=True)
    )
    return x[..., h, :][..., w]


PICTURE = f(1, 2, 4, 5)
for mode, size in product(
    ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS", "UNALIGN_CORNERS"),
    ((7, 3), (1, 8)),
):
    row(
        "resize_bilinear",
        {"x": PICTURE},
        lambda x, a=(size, mode): bilinear(x, *a),
        target_size_height=size[0],
        target_size_width=size[1],
        sampling_mode=mode,
    )
row(
    "resize_nearest_neighbor",
    {"x": PICTURE},
    lambda x: nearest(x, (7, 3)),
    target_size_height=7,
    target_size_width=3,
)
row(
    "resize",
    {"x": PICTURE},
    lambda x: bilinear(x, (6, 5), "DEFAULT"),
    shape=[1, 6, 0],
    resized_dims=2,
)
row(
    "resize",
    {"x": PICTURE, "shape": np.array([9, 8, 3], I)},
    lambda x, s: nearest(x, (8, 3)),
    resized_dims=2,
    interpolation_mode="NEAREST_NEIGHBOR",
)
SCALES = {"scale_factor_height": 2, "scale_factor_width": 1.5}
row("upsample_nearest_neighbor", {"x": PICTURE}, lambda x: nearest(x, (8, 7)), **SCALES)
for aligned, centred, mode in (
    (True, False, "STRICT_ALIGN_CORNERS"),
    (False, True, "UNALIGN_CORNERS"),
    (False, False, "DEFAULT"),
):
    row(
        "upsample_bilinear",
        {"x": PICTURE},
        lambda x, m=mode: bilinear(x, (8, 7), m),
        **SCALES,
        align_corners=aligned,
        half_pixel_centers=centred,
    )


def sampled(x: np.ndarray, points: np.ndarray, fill: float) -> np.ndarray:
    """The images at points (B, H, W, 2) as (x, y) in elements, outside of them ``fill``."""
    n, c, h, w = x.shape
    result = np.zeros((n, c, *points.shape[1:3]), F)
    for b, r, s in np.ndindex(points.shape[:3]):
        px, py = points[b, r, s]
        for y, v in product((int(np.floor(py)), int(np.floor(py)) + 1), (0, 1)):
            u = int(np.floor(px)) + v
            weight = (1 - abs(px - u)) * (1 - abs(py - y))
            inside = 0 <= u < w and 0 <= y < h
            result[b, :, r, s] += weight * (x[b, :, y, u] if inside else fill)
    return result


POINTS = f(1, 3, 2, 2, low=-0.5, high=4.5)
SAMPLING = {"sampling_mode": "bilinear", "padding_mode": "constant", "align_corners": True}
row(
    "resample",
    {"x": PICTURE, "coordinates": POINTS},
    lambda x, p: sampled(x, p, 0.75),
    **SAMPLING,
    padding_value=0.75,
    coordinates_mode="unnormalized",
)
row(
    "resample",
    {"x": PICTURE, "coordinates": POINTS / 4},
    lambda x, p: sampled(x, p * np.array([4, 3], F), 0),
    **SAMPLING,
    padding_value=0.0,
    coordinates_mode="normalized_zero_to_one",
)
MATRIX = np.array([[0.5, 0.1, 0.2, -0.3, 0.9, 0.1]], F)


def affine(x: np.ndarray, m: np.ndarray) -> np.ndarray:
    """The image at the points of an affine map of [-1, 1]."""
    ys, xs = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 6), indexing="ij")
    a = m.reshape(2, 3)
    mapped = np.stack([a[k, 0] * xs + a[k, 1] * ys + a[k, 2] for k in (0, 1)], -1)
    return sampled(x, ((mapped + 1) / 2 * np.array([4, 3]))[None], 0)


row(
    "affine",
    {"x": PICTURE, "transform_matrix": MATRIX},
    affine,
    **SAMPLING,
    output_height=3,
    output_width=6,
    padding_value=0.0,
    coordinates_mode="normalized_minus_one_to_one",
)


@pytest.mark.parametrize("row_", ROWS, ids=ROWS.ids())
def test_it_computes_what_numpy_computes(row_: Row) -> None:
    row_.check()
