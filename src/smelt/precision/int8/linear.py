"""Linear quantization: ``number = (code - zero_point) * scale``, where a code is an integer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.operators.onnxruntime.four_bits import (
    INT4,
    LEAST_SCALE,
    NORMAL_FLOAT4,
    Grid,
    grid_of,
)


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
    def is_nf4(self) -> bool:
        """True if the codes are of NF4."""
        return bool(self.block) and self.codes.dtype == NORMAL_FLOAT4.dtype

    @property
    def nbytes(self) -> int:
        """The bytes of codes and scales in a file."""
        bits = 4 if self.block else 8
        return -(-self.codes.size * bits // 8) + self.scale.nbytes


def activation_parameters(
    smallest: float, largest: float, *, signed: bool, bits: int = 8
) -> Parameters:
    """Return the parameters that cover ``smallest`` to ``largest`` and represent 0 exactly.

    With low = min(smallest, 0) and high = max(largest, 0), the scale is (high - low) / 255, or
    65535 for 16 ``bits``, and the zero point is the first code - low / scale, rounded. Codes are
    unsigned unless ``signed``. A range without numbers other than 0 gets the scale 1.
    """
    low, high = min(smallest, 0.0), max(largest, 0.0)
    dtype = np.dtype(f"{'int' if signed else 'uint'}{bits}")
    codes = np.iinfo(dtype)
    scale = (high - low) / (codes.max - codes.min)
    if scale < LEAST_SCALE:
        return Parameters(np.ones((), np.float32), np.zeros((), dtype))
    zero = int(np.clip(round(-low / scale) + codes.min, codes.min, codes.max))
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


def weight_blocks(weight: np.ndarray, axis: int, block: int, grid: Grid = INT4) -> Codes:
    """Return 4-bit codes of a matrix, with a scale for ``block`` elements along ``axis``.

    ``grid`` tries several scales for each block and takes the one with the least squared error.
    """
    moved = np.moveaxis(weight, axis, -1).astype(np.float32)
    rows, length = moved.shape
    count = -(-length // block)
    padded = np.zeros((rows, count * block), np.float32)
    padded[:, :length] = moved
    blocks = padded.reshape(rows, count, block)
    scale = grid.best_scale(blocks)
    codes = grid.codes(blocks / scale[..., None]).reshape(rows, -1)[:, :length]
    back = np.moveaxis(codes, -1, axis).astype(grid.dtype)
    return Codes(back, np.ascontiguousarray(np.moveaxis(scale, -1, axis)), axis, block)


def numbers_of(codes: Codes) -> np.ndarray:
    """Return the numbers that ``codes`` stand for, as float64."""
    numbers, scale = codes.codes.astype(np.float64), codes.scale.astype(np.float64)
    if codes.block:
        numbers = grid_of(codes.codes.dtype).numbers(numbers).astype(np.float64)
        spread = np.repeat(scale, codes.block, axis=codes.axis)
        scale = spread.take(range(numbers.shape[codes.axis]), axis=codes.axis)
    elif scale.ndim:
        scale = scale.reshape([-1 if axis == codes.axis else 1 for axis in range(numbers.ndim)])
    return np.asarray(numbers * scale)
