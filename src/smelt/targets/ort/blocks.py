"""Weights in blocks of few bits, as ``com.microsoft.MatMulNBits`` reads them.

A block is a run of elements of one column with one scale. Rounding is to the nearest code: the
largest element of a symmetric block gets the code of the largest magnitude, and an asymmetric block
reaches from its least to its greatest element, 0 included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

AT_ONCE = 1 << 22
"""Elements that are rounded at a time, so that a large weight needs little memory besides."""


@dataclass(frozen=True)
class Packed:
    """``codes`` are bytes of ``[columns, blocks, block * bits / 8]``, lower bits first; ``scales``
    of ``[columns, blocks]``; ``zeros`` bytes of ``[columns, ...]``, none where the zero point of
    every block is half of the codes."""

    codes: Array
    scales: Array
    zeros: Array | None

    @property
    def nbytes(self) -> int:
        return sum(
            part.nbytes for part in (self.codes, self.scales, self.zeros) if part is not None
        )


def pack(weight: Array, bits: int, block: int, symmetric: bool) -> Packed:
    """``weight`` of ``[rows, columns]``, finite, in blocks of ``block`` along its rows.

    The last block is filled up with zeros; ``bits`` is 4 or 8.
    """
    rows, columns = weight.shape
    blocks = -(-rows // block)
    codes = np.empty((columns, blocks, block * bits // 8), np.uint8)
    scales = np.empty((columns, blocks), np.float32)
    zeros = np.empty((columns, blocks), np.uint8)
    step = max(1, AT_ONCE // (blocks * block))
    for begin in range(0, columns, step):
        part = slice(begin, begin + step)
        filled = np.zeros((len(codes[part]), blocks * block), np.float32)
        filled[:, :rows] = weight[:, part].T
        split = filled.reshape(-1, blocks, block)
        scales[part], zeros[part] = (_symmetric if symmetric else _asymmetric)(split, bits)
        whole = np.rint(split / scales[part, :, None]) + zeros[part, :, None]
        codes[part] = two_a_byte(np.clip(whole, 0, (1 << bits) - 1).astype(np.uint8), bits)
    return Packed(codes, scales, None if symmetric else two_a_byte(zeros, bits))


def _symmetric(split: Array, bits: int) -> tuple[Array, Array]:
    """Scales by which the element of the largest magnitude becomes the least code."""
    half = 1 << (bits - 1)
    place = np.abs(split).argmax(-1)[..., None]
    scales = np.take_along_axis(split, place, -1)[..., 0] / np.float32(-half)
    return _not_zero(scales), np.full(scales.shape, half, np.uint8)


def _asymmetric(split: Array, bits: int) -> tuple[Array, Array]:
    """Scales and zero points by which the range of the elements, and 0, fills all codes."""
    highest = (1 << bits) - 1
    low, high = np.minimum(split.min(-1), 0), np.maximum(split.max(-1), 0)
    scales = _not_zero(high / np.float32(highest) - low / np.float32(highest))
    return scales, np.clip(np.rint(-low / scales), 0, highest).astype(np.uint8)


def _not_zero(scales: Array) -> Array:
    """1 for scales below the least normal number, by which nothing is divided safely."""
    return np.where(np.abs(scales) < np.finfo(np.float32).tiny, np.float32(1), scales)


def two_a_byte(codes: Array, bits: int) -> Array:
    """Codes of 4 bits two a byte along the last axis, lower bits first; of 8 bits as they are."""
    if bits == 8:
        return codes
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], axis=-1)
    low, high = codes[..., 0::2], codes[..., 1::2]
    both: Array = low | (high << 4)
    return both
