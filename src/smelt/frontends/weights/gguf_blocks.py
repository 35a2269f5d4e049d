"""Decode the blocks of quantized numbers in GGUF files.

The formats are those of ``ggml-common.h`` of llama.cpp. ``d`` and ``m`` are float16, ``q`` the bits
of a number:

====== ======== ===== =============================================================
type   elements bytes a number is
====== ======== ===== =============================================================
Q4_0         32    18 ``d * (q - 8)``; elements 0 to 15 are the lower halves of bytes
Q4_1         32    20 ``d * q + m``
Q5_0         32    22 ``d * (q - 16)``; the fifth bits stand in a word of their own
Q5_1         32    24 ``d * q + m``
Q8_0         32    34 ``d * q``
Q4_K        256   144 ``d * scale * q - m * least``, with 6 bits for the scale and the least number
Q5_K        256   176 of each 32 elements
Q6_K        256   210 ``d * scale * (q - 32)``, with an int8 scale for each 16 elements
====== ======== ===== =============================================================

Codes and scales of a symmetric type multiply to its numbers exactly as llama.cpp computes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class BlockType:
    """How ``elements`` numbers stand in ``nbytes`` bytes.

    ``split`` takes uint8[N, nbytes] and returns three arrays: codes [N, elements]; scales and
    offsets float32[N, elements / M], one for M numbers each. A number is ``code * scale - offset``.
    A symmetric type has no offsets, and int8 codes of ``bits`` bits; ``bits`` is 0 for others.
    """

    name: str
    elements: int
    nbytes: int
    bits: int
    split: Callable[[Array], tuple[Array, Array, Array | None]]

    def decode(self, blocks: Array) -> Array:
        """Return the numbers of ``blocks``, uint8[N, nbytes], as float32[N, elements]."""
        codes, scales, offsets = self.split(blocks)
        parts = codes.reshape(*scales.shape, -1).astype(np.float32) * scales[..., None]
        if offsets is not None:
            parts -= offsets[..., None]
        return parts.reshape(codes.shape)


def _half(blocks: Array, at: int) -> Array:
    """Return the float16 at byte ``at`` of each block as float32[N, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view("<f2").astype(np.float32)


def _nibbles(packed: Array) -> Array:
    """Return the lower halves of the bytes uint8[..., B], then the upper halves: [..., 2 * B]."""
    return np.concatenate([packed & 15, packed >> 4], axis=-1)


def _fifth_bits(blocks: Array, at: int) -> Array:
    """Return bit i of the 32-bit word at byte ``at`` as uint8[N, 32], shifted to the fifth bit."""
    return np.unpackbits(blocks[:, at : at + 4], axis=1, bitorder="little") << 4


def _q4_0(blocks: Array) -> tuple[Array, Array, None]:
    """Return codes and scales of Q4_0."""
    return _nibbles(blocks[:, 2:]).astype(np.int8) - np.int8(8), _half(blocks, 0), None


def _q4_1(blocks: Array) -> tuple[Array, Array, Array]:
    """Return codes, scales and offsets of Q4_1."""
    return _nibbles(blocks[:, 4:]), _half(blocks, 0), -_half(blocks, 2)


def _q5_0(blocks: Array) -> tuple[Array, Array, None]:
    """Return codes and scales of Q5_0."""
    codes = _nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)
    return codes.astype(np.int8) - np.int8(16), _half(blocks, 0), None


def _q5_1(blocks: Array) -> tuple[Array, Array, Array]:
    """Return codes, scales and offsets of Q5_1."""
    codes = _nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4)
    return codes, _half(blocks, 0), -_half(blocks, 2)


def _q8_0(blocks: Array) -> tuple[Array, Array, None]:
    """Return codes and scales of Q8_0."""
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8), _half(blocks, 0), None


def _six_bits(packed: Array) -> tuple[Array, Array]:
    """Return eight scales and eight least numbers of 6 bits each, packed in uint8[N, 12].

    The lower six bits of bytes 0 to 7 are the first four scales and least numbers. Bytes 8 to 11
    have the lower four bits of the others, whose upper two bits are those of bytes 0 to 7.
    """
    scales, leasts, rest = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    upper_scales = (rest & 15) | (scales >> 6 << 4)
    upper_leasts = (rest >> 4) | (leasts >> 6 << 4)
    return (
        np.concatenate([scales & 63, upper_scales], axis=1).astype(np.float32),
        np.concatenate([leasts & 63, upper_leasts], axis=1).astype(np.float32),
    )


def _q4_k(blocks: Array) -> tuple[Array, Array, Array]:
    """Return codes, scales and offsets of Q4_K."""
    scales, leasts = _six_bits(blocks[:, 4:16])
    codes = _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 256)
    return codes, _half(blocks, 0) * scales, _half(blocks, 2) * leasts


def _q5_k(blocks: Array) -> tuple[Array, Array, Array]:
    """Return codes, scales and offsets of Q5_K: bit i of a byte is the fifth bit of part i."""
    scales, leasts = _six_bits(blocks[:, 4:16])
    fifth = np.stack([(blocks[:, 16:48] >> part & 1) << 4 for part in range(8)], axis=1)
    codes = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 256)
    return codes | fifth.reshape(-1, 256), _half(blocks, 0) * scales, _half(blocks, 2) * leasts


def _q6_k(blocks: Array) -> tuple[Array, Array, None]:
    """Return codes and scales of Q6_K: two halves of 128 elements, in four parts each."""
    lower = _nibbles(blocks[:, :128].reshape(-1, 2, 64))
    pairs = blocks[:, 128:192].reshape(-1, 2, 1, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8).reshape(4, 1)
    upper = ((pairs >> shifts & 3) << 4).reshape(-1, 2, 128)
    codes = (lower | upper).reshape(-1, 256).astype(np.int8) - np.int8(32)
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8).astype(np.float32)
    return codes, _half(blocks, 208) * scales, None


BLOCK_TYPES: Mapping[int, BlockType] = {
    2: BlockType("Q4_0", 32, 18, 4, _q4_0),
    3: BlockType("Q4_1", 32, 20, 0, _q4_1),
    6: BlockType("Q5_0", 32, 22, 5, _q5_0),
    7: BlockType("Q5_1", 32, 24, 0, _q5_1),
    8: BlockType("Q8_0", 32, 34, 8, _q8_0),
    12: BlockType("Q4_K", 256, 144, 0, _q4_k),
    13: BlockType("Q5_K", 256, 176, 0, _q5_k),
    14: BlockType("Q6_K", 256, 210, 6, _q6_k),
}
"""The quantized types by their numbers in files."""
