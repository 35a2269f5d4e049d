"""Source rows and weights of a resized axis.

Resize is separable: for each axis, a row of the result is a weighted sum of a few source rows.
Formulas are those of ONNX's Resize, with "length_resized" the whole number of result rows, as in
PyTorch, its exporters and ONNX Runtime. (ONNX's reference uses the size times the scale, so that
``align_corners`` misses the last corner if that product has a fraction.) If rounding decides which
row is read, coordinates are computed in float32 in the order of ONNX Runtime, so that the rows
agree; else in float64. The formulas run in NumPy for constant scales, and as instructions for
data-dependent ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from smelt.operators.formula import Arrays, Number
from smelt.operators.formula.symbolic import Writer

CROP = "tf_crop_and_resize"
SYMMETRIC = "half_pixel_symmetric"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one axis is resized; fields as the attributes of ONNX's Resize.

    ``scale`` is None if the sizes of the axis imply it. ``start`` and ``end`` are its region of
    interest, which only ``tf_crop_and_resize`` reads.
    """

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    antialias: bool
    exclude_outside: bool
    scale: float | None
    start: float
    end: float
    extrapolation: float

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Sampling:
        """Return the sampling that the attributes of an instruction describe."""
        return cls(**{name: attributes[name] for name in cls.__slots__})

    @property
    def in_float32(self) -> bool:
        """True if rounding of coordinates decides which rows are read."""
        return self.mode == "nearest" or self.coordinates == CROP

    def first_tap(self, shrunk: float) -> int:
        """Return the first tap relative to the row before a coordinate; taps lie symmetrically
        around it."""
        reach = 1 if self.mode == "linear" else 2
        return int(np.floor(-reach / shrunk)) + 1

    def attributes(self) -> dict[str, Any]:
        """Return the fields as attributes of an instruction."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Taps:
    """Row ``i`` of the result is ``sum(weights[i, t] * source[rows[i, t]])``.

    If ``outside[i]``, it is the extrapolation value instead.
    """

    rows: np.ndarray
    weights: np.ndarray
    outside: np.ndarray


def taps(sampling: Sampling, size: int, count: int) -> Taps:
    """Return the taps of each of ``count`` result rows on an axis of ``size`` >= 1 rows."""
    centers = coordinates(sampling, size, count)
    outside = np.zeros(count, np.bool_)
    if sampling.coordinates == CROP:
        outside = (centers < 0) | (centers > size - 1)
    if sampling.mode == "nearest":
        nearest = np.asarray(nearest_of(Arrays(), sampling.nearest, centers), np.int64)
        rows = np.clip(nearest, 0, size - 1)
        return Taps(rows[:, None], np.ones((count, 1)), outside)
    rows, weights = _neighbours(sampling, centers.astype(np.float64), size, count)
    beyond = (rows < 0) | (rows >= size)
    if sampling.exclude_outside:
        weights = np.where(beyond, 0, weights)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return Taps(*_with_fewest_taps(np.clip(rows, 0, size - 1), weights), outside)


def coordinates(sampling: Sampling, size: int, count: int) -> Any:
    """Return the source coordinate of each result row."""
    F: Any = np.float32 if sampling.in_float32 else np.float64  # noqa: N806 - a type
    scale = F(count) / F(size) if sampling.scale is None else F(sampling.scale)
    is_exact = sampling.scale is None and not sampling.in_float32
    length = F(count) if is_exact else scale * F(size)
    # ONNX Runtime adds the offset of this mode in float64, and rounds the sum.
    term_type: Any = np.float64 if sampling.coordinates == SYMMETRIC else F
    operands = (np.arange(count, dtype=term_type), F(size), F(count), scale, length)
    with np.errstate(all="ignore"):
        sources: Any = coordinate_of(
            Arrays(), sampling.coordinates, *operands, F(sampling.start), F(sampling.end)
        )
    return sources.astype(F)


def depends_on_rounding(sampling: Sampling, size: int, count: int) -> bool:
    """True if a coordinate is so close to a change of the nearest row that its rounding decides.

    Runtimes round coordinates differently. With an integer scale no coordinate is rounded.
    """
    if sampling.scale in (None, count / size) and count % size == 0:
        return False
    centers = np.asarray(coordinates(sampling, size, count), np.float64)
    low, high = (
        np.clip(nearest_of(Arrays(), sampling.nearest, shifted), 0, size - 1)
        for shifted in (centers - NEAR, centers + NEAR)
    )
    return bool((low != high).any())


NEAR = 1e-4
"""Distance from a change of the nearest row, in rows, within which rounding may decide."""


def coordinate_of(
    m: Writer[Number],
    mode: str,
    i: Number,
    size: Number,
    count: Number,
    scale: Number,
    length: Number,
    start: Number,
    end: Number,
) -> Number:
    """Return the coordinate of result row ``i`` of ``count`` among ``size`` source rows.

    ``length`` is the size times the scale, with its fraction; only ``half_pixel_symmetric`` uses
    it.
    """
    match mode:
        case "asymmetric":
            return i / scale
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        case "align_corners":
            return m.op("Where", m.op("Equal", count, 1), i * 0, i * (size - 1) / (count - 1))
        case "pytorch_half_pixel":
            return m.op("Where", count > 1, (i + 0.5) / scale - 0.5, i * 0)
        case "tf_crop_and_resize":
            middle = (start + end) * 0.5 * (size - 1) + i * 0
            many = start * (size - 1) + i * (end - start) * (size - 1) / (count - 1)
            return m.op("Where", m.op("Equal", count, 1), middle, many)
        case "half_pixel_symmetric":
            offset = size / 2 * (1 - count / length)
            return offset + (i + 0.5) / scale - 0.5
    return (i + 0.5) / scale - 0.5


def nearest_of(m: Writer[Number], rounding: str, coordinate: Number) -> Number:
    """Return the row that is read for a coordinate between rows."""
    below = m.op("Floor", coordinate)
    match rounding:
        case "floor":
            return below
        case "ceil":
            return m.op("Ceil", coordinate)
        case "round_prefer_ceil":
            return m.op("Where", coordinate - below >= 0.5 - HALF_WAY, below + 1, below)
    return m.op("Where", coordinate - below > 0.5 + HALF_WAY, below + 1, below)


HALF_WAY = 1e-6
"""Distance from the middle between two rows within which a coordinate counts as the middle, as in
ONNX Runtime."""


def weight_of(m: Writer[Number], mode: str, distance: Number, cubic: float) -> Number:
    """Return the weight of a row at ``distance``; cubic weights are Keys' kernel with parameter
    ``cubic``."""
    if mode == "linear":
        return m.op("Max", 1 - distance, 0)
    x, a = distance, cubic
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return m.op("Where", x <= 1, near, m.op("Where", x < 2, far, 0))


def _neighbours(
    sampling: Sampling, centers: np.ndarray, size: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows around each coordinate, possibly beyond the ends, and their weights."""
    scale = count / size if sampling.scale is None else sampling.scale
    shrunk = min(scale, 1.0) if sampling.antialias else 1.0
    first = sampling.first_tap(shrunk)
    # A coordinate on a row counts as the end of the span before it, as in the specification.
    base = np.ceil(centers).astype(np.int64) - 1
    rows = base[:, None] + np.arange(first, 2 - first)
    distance = np.abs(rows - centers[:, None]) * shrunk
    return rows, weight_of(Arrays(), sampling.mode, distance, sampling.cubic)


def _with_fewest_taps(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the fewest taps of each row: no weight of 0, and no source row twice.

    Shorter lists are padded by splitting the weight of the last row: with a padding weight of 0, an
    infinite element would give NaN.
    """
    merged: list[dict[int, float]] = []
    for row_numbers, shares in zip(rows.tolist(), weights.tolist(), strict=True):
        shares_by_row: dict[int, float] = {}
        for row, share in zip(row_numbers, shares, strict=True):
            shares_by_row[row] = shares_by_row.get(row, 0.0) + share
        nonzero = {row: share for row, share in shares_by_row.items() if share != 0}
        merged.append(nonzero or {row_numbers[0]: 0.0})
    width = max(map(len, merged), default=1)
    rows_out = np.zeros((len(merged), width), np.int64)
    weights_out = np.zeros((len(merged), width))
    for i, line_taps in enumerate(merged):
        *all_but_last, (row, share) = line_taps.items()
        copies = width - len(all_but_last)
        rows_out[i] = [*(r for r, _ in all_but_last), *[row] * copies]
        weights_out[i] = [*(s for _, s in all_but_last), *[share / copies] * copies]
    return rows_out, weights_out
