"""Quantize weights in blocks of few bits, as operators of ``com.microsoft`` read them.

A block is a run of elements in one column with one scale. Rounding is to the nearest code. In a
symmetric block, the element of largest magnitude gets the code of largest magnitude; an asymmetric
block covers the range from its least to its greatest element, including 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from smelt.operators.onnxruntime.four_bits import NORMAL_FLOAT4, ZERO_OF_NF4

Array = np.ndarray[Any, np.dtype[Any]]

AT_ONCE = 1 << 22
"""Elements that are quantized at a time, which limits the additional memory."""


@dataclass(frozen=True)
class Packed:
    """Quantized weights.

    ``codes``: bytes [columns, blocks, block * bits / 8], lower bits first. ``scales``: [columns,
    blocks]. ``zeros``: zero points as bytes [columns, ...], None for symmetric blocks, whose zero
    point is half the code range.
    """

    codes: Array
    scales: Array
    zeros: Array | None

    @property
    def nbytes(self) -> int:
        """The bytes of codes, scales and zero points."""
        return sum(
            part.nbytes for part in (self.codes, self.scales, self.zeros) if part is not None
        )


def pack(weight: Array, bits: int, block: int, symmetric: bool) -> Packed:
    """Quantize ``weight`` [rows, columns], which is finite, in blocks of ``block`` rows.

    The last block is padded with zeros; ``bits`` is 4 or 8.
    """
    rows, columns = weight.shape
    block_count = -(-rows // block)
    codes = np.empty((columns, block_count, block * bits // 8), np.uint8)
    scales = np.empty((columns, block_count), np.float32)
    zeros = np.empty((columns, block_count), np.uint8)
    step = max(1, AT_ONCE // (block_count * block))
    for begin in range(0, columns, step):
        chunk = slice(begin, begin + step)
        padded = np.zeros((len(codes[chunk]), block_count * block), np.float32)
        padded[:, :rows] = weight[:, chunk].T
        split = padded.reshape(-1, block_count, block)
        scales[chunk], zeros[chunk] = (_symmetric if symmetric else _asymmetric)(split, bits)
        rounded = np.rint(split / scales[chunk, :, None]) + zeros[chunk, :, None]
        codes[chunk] = two_a_byte(np.clip(rounded, 0, (1 << bits) - 1).astype(np.uint8), bits)
    return Packed(codes, scales, None if symmetric else two_a_byte(zeros, bits))


def _symmetric(blocks: Array, bits: int) -> tuple[Array, Array]:
    """Return scales that map the element of largest magnitude to code 0, the least, and zeros.

    Code 0 stands for -half times the scale, the number of largest magnitude.
    """
    half = 1 << (bits - 1)
    largest_element = np.abs(blocks).argmax(-1)[..., None]
    scales = np.take_along_axis(blocks, largest_element, -1)[..., 0] / np.float32(-half)
    return _short(scales), np.full(scales.shape, half, np.uint8)


def _asymmetric(blocks: Array, bits: int) -> tuple[Array, Array]:
    """Return scales and zero points that map the range of the elements, with 0, to all codes."""
    highest = (1 << bits) - 1
    low, high = np.minimum(blocks.min(-1), 0), np.maximum(blocks.max(-1), 0)
    scales = _short(high / np.float32(highest) - low / np.float32(highest))
    return scales, np.clip(np.rint(-low / scales), 0, highest).astype(np.uint8)


def _short(scales: Array) -> Array:
    """Round scales to numbers of float16, where it holds them; 1 for scales near 0.

    Compiled code keeps such scales in float16. Codes are computed for the rounded scale, so this
    hardly adds to the error of a weight.
    """
    scales = np.where(np.abs(scales) < np.finfo(np.float32).tiny, np.float32(1), scales)
    limits = np.finfo(np.float16)
    is_normal = (np.abs(scales) >= limits.smallest_normal) & (np.abs(scales) <= limits.max)
    return np.where(is_normal, np.where(is_normal, scales, 1).astype(np.float16), scales)


def pack_nf4(weight: Array, block: int) -> Packed:
    """Round ``weight`` [rows, columns], which is finite, to NF4, as MatMulBnb4 reads it.

    Blocks are runs of the columns one behind the other, so that a block may begin in one column and
    end in the next. The first code of a byte has its upper bits.
    """
    numbers = np.ascontiguousarray(weight.T, np.float32).reshape(-1)
    count = -(-numbers.size // block)
    codes = np.full((count, block), ZERO_OF_NF4, np.uint8)
    scales = np.empty(count, np.float32)
    step = max(1, AT_ONCE // block)
    for begin in range(0, count, step):
        chunk = slice(begin, begin + step)
        part = numbers[begin * block : (begin + step) * block]
        padded = np.zeros((len(codes[chunk]), block), np.float32)
        padded.reshape(-1)[: part.size] = part
        scales[chunk] = NORMAL_FLOAT4.best_scale(padded)
        codes[chunk] = NORMAL_FLOAT4.codes(padded / scales[chunk, None]).astype(np.uint8)
    used = codes.reshape(-1)[: -(-numbers.size // 2) * 2]
    return Packed(used[1::2] | used[0::2] << 4, scales, None)


def two_a_byte(codes: Array, bits: int) -> Array:
    """Pack 4-bit codes two in a byte along the last axis, low bits first; 8-bit codes stay."""
    if bits == 8:
        return codes
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], axis=-1)
    low, high = codes[..., 0::2], codes[..., 1::2]
    both: Array = low | (high << 4)
    return both
