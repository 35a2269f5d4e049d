"""Where an axis that is resized reads its source, and with which weights.

Resize is separable: each axis on its own reads a few rows of the source for each row of the
result. Formulas are those of ONNX's Resize. Where a rounding decides which row is read, coordinates
are computed in float32 in the order of ONNX Runtime, so that it is the same row; else in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

CROP = "tf_crop_and_resize"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one axis is resized; fields as the attributes of ONNX's Resize.

    ``scale`` is None where the sizes of the axis say it. ``start`` and ``end`` are its region of
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
        """The sampling among the attributes of an instruction."""
        return cls(**{name: attributes[name] for name in cls.__slots__})

    def attributes(self) -> dict[str, Any]:
        """Itself as attributes of an instruction."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Taps:
    """Row ``i`` of the result is ``sum(weights[i, t] * source[rows[i, t]])``.

    ``outside[i]`` says that it is the extrapolation value instead.
    """

    rows: np.ndarray
    weights: np.ndarray
    outside: np.ndarray


def taps(sampling: Sampling, size: int, count: int) -> Taps:
    """What each of ``count`` rows reads of an axis of ``size`` rows, at least one."""
    at = coordinates(sampling, size, count)
    outside = np.zeros(count, np.bool_)
    if sampling.coordinates == CROP:
        outside = (at < 0) | (at > size - 1)
    if sampling.mode == "nearest":
        rows = np.clip(_nearest(sampling.nearest, at), 0, size - 1)
        return Taps(rows[:, None], np.ones((count, 1)), outside)
    rows, weights = _neighbours(sampling, at.astype(np.float64), size, count)
    beyond = (rows < 0) | (rows >= size)
    if sampling.exclude_outside:
        weights = np.where(beyond, 0, weights)
    total = weights.sum(axis=1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return Taps(*_merged(np.clip(rows, 0, size - 1), weights), outside)


def coordinates(sampling: Sampling, size: int, count: int) -> Any:
    """Where each row of the result lies in the source."""
    decides = sampling.mode == "nearest" or sampling.coordinates == CROP
    F: Any = np.float32 if decides else np.float64  # noqa: N806 - a type
    i, half = np.arange(count, dtype=F), F(0.5)
    scale = F(count) / F(size) if sampling.scale is None else F(sampling.scale)
    length = F(count) if sampling.scale is None else scale * F(size)
    match sampling.coordinates:
        case "asymmetric":
            return i / scale
        case "tf_half_pixel_for_nn":
            return (i + half) / scale
        case "align_corners":
            return i * F(size - 1) / (length - F(1)) if length != 1 else 0 * i
        case "pytorch_half_pixel":
            return (i + half) / scale - half if length > 1 else 0 * i
        case "tf_crop_and_resize":
            start, end, last = F(sampling.start), F(sampling.end), F(size - 1)
            if length == 1:
                return half * (start + end) * last + 0 * i
            return start * last + i * (end - start) * last / (length - F(1))
        case "half_pixel_symmetric":
            offset = F(size) / F(2) * (F(1) - F(count) / length)
            return offset + (i + half) / scale - half
    return (i + half) / scale - half


def _nearest(rounding: str, at: np.ndarray) -> np.ndarray:
    below = chosen = np.floor(at)
    match rounding:
        case "floor":
            pass
        case "ceil":
            chosen = np.ceil(at)
        case "round_prefer_ceil":
            chosen = below + (at - below >= 0.5)
        case _:
            chosen = below + (at - below > 0.5)
    return np.asarray(chosen, np.int64)


def _neighbours(
    sampling: Sampling, at: np.ndarray, size: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The rows around each coordinate, maybe beyond the ends, and their weights."""
    scale = count / size if sampling.scale is None else sampling.scale
    shrunk = min(scale, 1.0) if sampling.antialias else 1.0
    reach = 1 if sampling.mode == "linear" else 2
    first = int(np.floor(-reach / shrunk)) + 1
    # A coordinate on a row counts as the end of the span before it, as in the specification.
    base = np.ceil(at).astype(np.int64) - 1
    rows = base[:, None] + np.arange(first, 2 - first)
    distance = np.abs(rows - at[:, None]) * shrunk
    if sampling.mode == "linear":
        return rows, np.clip(1 - distance, 0, None)
    return rows, _cubic(distance, sampling.cubic)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The kernel of Keys with the parameter ``a``."""
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _merged(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As few taps as do: none of weight 0, none on the row of another.

    What is left over in shorter lists reads the last row again, for a part of its weight: with a
    weight of 0, an infinite element would become NaN.
    """
    merged: list[dict[int, float]] = []
    for line, shares in zip(rows.tolist(), weights.tolist(), strict=True):
        found: dict[int, float] = {}
        for row, share in zip(line, shares, strict=True):
            found[row] = found.get(row, 0.0) + share
        kept = {row: share for row, share in found.items() if share != 0}
        merged.append(kept or {line[0]: 0.0})
    width = max(map(len, merged), default=1)
    picked = np.zeros((len(merged), width), np.int64)
    shared = np.zeros((len(merged), width))
    for i, line_taps in enumerate(merged):
        *lead, (row, share) = line_taps.items()
        more = width - len(lead)
        picked[i] = [*(r for r, _ in lead), *[row] * more]
        shared[i] = [*(s for _, s in lead), *[share / more] * more]
    return picked, shared
