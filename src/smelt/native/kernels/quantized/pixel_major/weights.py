"""The order of weights in memory: four filters side by side, in pairs along the runs of a pixel."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.register_blocks import EqualBlocks
from smelt.native.types import C_TYPES

TOGETHER = 4
"""The filters that are computed at a time; those beyond the last four are computed one by one."""


def blocks_of(filters: int) -> list[EqualBlocks]:
    """Return ``filters`` in blocks of four and of one."""
    whole = filters // TOGETHER
    parts = [EqualBlocks(0, TOGETHER, whole), EqualBlocks(whole * TOGETHER, 1, filters % TOGETHER)]
    return [part for part in parts if part.count]


def in_pairs(runs: np.ndarray) -> np.ndarray:
    """Return weights ``[filter, run, element]`` as ``[block, run, pair, filter, 2]``, flat.

    Runs are padded to whole pairs, a block to a multiple of four elements.
    """
    padded = np.pad(runs, ((0, 0), (0, 0), (0, runs.shape[2] % 2)))
    blocks = []
    for part in blocks_of(len(runs)):
        for first in part.starts():
            block = padded[first : first + part.length]
            filters, count, _ = block.shape
            ordered = block.reshape(filters, count, -1, 2).transpose(1, 2, 0, 3).reshape(-1)
            blocks.append(np.pad(ordered, (0, -ordered.size % 4)))
    return np.concatenate(blocks) if blocks else np.zeros(0, runs.dtype)


LARGEST_SUM = 2**23
"""The limit of sums of second columns, which are the upper 24 bits of 32-bit sums."""


def fits_two_columns_a_word(filters: np.ndarray) -> bool:
    """True if ``two_columns_a_word`` takes the weights, and sums of second columns are small."""
    if filters.dtype != np.int8:
        return False
    blocks = filters[: len(filters) // TOGETHER * TOGETHER].astype(np.int64)
    firsts, seconds = blocks[::2], blocks[1::2]
    lowest = (256 * seconds + firsts).min(initial=0)
    return bool(lowest >= -(2**15) and 255 * np.abs(seconds).sum(1).max(initial=0) < LARGEST_SUM)


def two_columns_a_word(filters: np.ndarray) -> np.ndarray:
    """Return int8 weights ``[filter, element]`` as the words of ``dot4.h``, flat.

    Blocks of four filters precede single filters. Of four elements of two filters, 0, 2, 1 and 3
    follow each other, 16 bits each: the first filter's weight plus 256 times that of the second.
    """
    padded = np.pad(filters, ((0, 0), (0, -filters.shape[1] % 4)))
    whole = len(filters) // TOGETHER * TOGETHER
    pairs = padded[:whole].astype(np.int16).reshape(-1, 2, 2, padded.shape[1] // 4, 4)
    halves = (pairs[:, :, 0] + 256 * pairs[:, :, 1])[..., [0, 2, 1, 3]].transpose(0, 2, 1, 3)
    words = [
        np.ascontiguousarray(part).reshape(-1).view(np.int32) for part in (halves, padded[whole:])
    ]
    return np.concatenate(words)


def block_size(runs: int, pairs: int, filters: int) -> int:
    """Return the elements of a block of ``filters``."""
    return -(-2 * runs * pairs * filters // 4) * 4


def constant_pairs(cx: KernelContext, weights: np.ndarray) -> str:
    """Return the name of the packed weights ``[group, filter, run, element]``.

    Bytes are stored as ``widen_pairs`` reads them: the second and the third of four swap places.
    """
    ordered = np.concatenate([in_pairs(group) for group in weights])
    if ordered.dtype != np.int8:
        return cx.constant(ordered, C_TYPES[ir.DataType.INT16])
    swapped = ordered.reshape(-1, 4)[:, [0, 2, 1, 3]].reshape(-1)
    return cx.constant(swapped, C_TYPES[ir.DataType.INT8])
