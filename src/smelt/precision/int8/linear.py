"""Linear quantization: ``number = (code - zero_point) * scale``, where a code is an integer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from ml_dtypes import int4

LEAST_SCALE = float(np.finfo(np.float32).tiny)
"""The least normal float32. A channel whose scale would be smaller, as of zeros, gets scale 1."""


@dataclass(frozen=True)
class Parameters:
    """The scale and zero point of an activation; the zero point has the type of the codes."""

    scale: np.ndarray
    zero_point: np.ndarray

    @property
    def limits(self) -> tuple[float, float]:
        """The numbers that the least and the greatest code stand for."""
        codes = np.iinfo(self.zero_point.dtype)
        scale, zero = float(self.scale), int(self.zero_point)
        return (codes.min - zero) * scale, (codes.max - zero) * scale


@dataclass(frozen=True)
class Codes:
    """A quantized weight: its codes, and a scale for each index of ``axis``, for each block, or
    one.

    ``block`` is the number of elements along ``axis`` that share a scale, 0 without blocks.
    ``is_transposed``: the product reads codes and scales transposed, and ``axis`` is an axis of the
    transposed codes.
    """

    codes: np.ndarray
    scale: np.ndarray
    axis: int
    block: int = 0
    is_transposed: bool = False

    @property
    def nbytes(self) -> int:
        """The bytes of codes and scales in a file."""
        bits = 4 if self.codes.dtype == int4 else 8
        return -(-self.codes.size * bits // 8) + self.scale.nbytes


def activation_parameters(smallest: float, largest: float, *, signed: bool) -> Parameters:
    """Return the parameters that cover ``smallest`` to ``largest`` and represent 0 exactly.

    With low = min(smallest, 0) and high = max(largest, 0), the scale is (high - low) / 255, and the
    zero point is the first code - low / scale, rounded. Codes are uint8, or int8 if ``signed``. A
    range without numbers other than 0 gets the scale 1.
    """
    low, high = min(smallest, 0.0), max(largest, 0.0)
    scale = (high - low) / 255
    dtype, first = (np.int8, -128) if signed else (np.uint8, 0)
    if scale < LEAST_SCALE:
        return Parameters(np.ones((), np.float32), np.zeros((), dtype))
    zero = int(np.clip(round(-low / scale) + first, first, first + 255))
    return Parameters(np.asarray(scale, np.float32), np.asarray(zero, dtype))


def weight_codes(
    weight: np.ndarray,
    axis: int,
    *,
    bits: int = 8,
    least: np.ndarray | None = None,
    per_tensor: bool = False,
) -> Codes:
    """Return symmetric int8 codes of ``weight`` with one scale for each index of ``axis``.

    The scale is max |weight| / (2**(bits - 1) - 1), and at least ``least``; the zero point is 0.
    ``bits`` below 8 leaves outer codes unused. ``per_tensor`` gives all indices the largest scale.
    """
    others = tuple(index for index in range(weight.ndim) if index != axis)
    most = (1 << (bits - 1)) - 1
    scale = np.max(np.abs(weight), axis=others, initial=0).astype(np.float32) / np.float32(most)
    if least is not None:
        scale = np.maximum(scale, least.astype(np.float32))
    scale = np.where(scale < LEAST_SCALE, np.float32(1), scale)
    if per_tensor:
        used = np.max(np.abs(weight), axis=others, initial=0) > 0
        scale = np.asarray(np.max(scale, where=used, initial=LEAST_SCALE), np.float32)
    shape = [] if per_tensor else [-1 if index == axis else 1 for index in range(weight.ndim)]
    rounded = np.rint(weight / scale.reshape(shape))
    return Codes(np.clip(rounded, -most, most).astype(np.int8), scale, axis)


def int4_blocks(weight: np.ndarray, axis: int, block: int) -> Codes:
    """Return symmetric int4 codes of a matrix, with a scale for ``block`` elements along ``axis``.

    A scale of max |weight| / 7 covers the full range of a block. A smaller scale clips the largest
    elements and rounds the others less. Each block gets the scale with the least squared error
    among 12, from 1 to 0.56 of the full one.
    """
    moved = np.moveaxis(weight, axis, -1).astype(np.float32)
    rows, length = moved.shape
    count = -(-length // block)
    padded = np.zeros((rows, count * block), np.float32)
    padded[:, :length] = moved
    blocks = padded.reshape(rows, count, block)
    peak = np.abs(blocks).max(axis=-1)
    full_scale = np.where(peak < LEAST_SCALE, np.float32(1), peak / np.float32(7))
    best_error = np.full(peak.shape, np.inf, np.float32)
    scale = full_scale
    for part in np.linspace(1.0, 0.56, 12, dtype=np.float32):
        trial = full_scale * part
        codes = np.clip(np.rint(blocks / trial[..., None]), -8, 7)
        error = np.square(codes * trial[..., None] - blocks).sum(axis=-1)
        scale = np.where(error < best_error, trial, scale)
        best_error = np.minimum(error, best_error)
    codes = np.clip(np.rint(blocks / scale[..., None]), -8, 7).reshape(rows, -1)[:, :length]
    back = np.moveaxis(codes, -1, axis).astype(int4)
    return Codes(back, np.ascontiguousarray(np.moveaxis(scale, -1, axis)), axis, block)
