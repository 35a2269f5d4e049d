"""Codes of weights in panels of columns, made once for all programs that read the same weights."""

from __future__ import annotations

import numpy as np

from smelt.native.kernels.quantized.weight_blocks import Blocks
from smelt.native.packed_once import aligned_empty, packed_once

PANEL = 16
"""The columns of a panel."""


def panel_codes(codes: np.ndarray, blocks: Blocks, width: int) -> np.ndarray:
    """Return the bytes of ``codes``, [columns, blocks, bytes], in panels of columns.

    The order is panel, block, word, column, and the bytes of a word. Columns are padded to a
    multiple of ``width``. Programs with the same codes get the same array.
    """
    rows = codes.reshape(blocks.columns, -1)
    return packed_once(codes, (blocks, width), lambda: _panels(rows, blocks, width))


def _panels(rows: np.ndarray, blocks: Blocks, width: int) -> np.ndarray:
    """Return new panels of ``rows``, the packed codes of each column."""
    columns = -(-blocks.columns // width) * width
    words = blocks.row * blocks.bits // 32
    made = aligned_empty(columns * words, np.uint32).view("<u4").reshape(-1, words, PANEL)
    for number in range(len(made)):
        few = np.ascontiguousarray(rows[number * PANEL : (number + 1) * PANEL]).view("<u4")
        made[number, :, : len(few)] = few.T
        made[number, :, len(few) :] = 0
        if blocks.bits == 4:
            _interleave_halves(made[number])
    return made.reshape(-1).view(np.uint8)


def _interleave_halves(words: np.ndarray) -> None:
    """Change the order of the 4-bit codes of each word from 0 1 2 3 4 5 6 7 to 0 4 1 5 2 6 3 7."""
    for mask, shift in ((0x0000FF00, 8), (0x00F000F0, 4)):
        differing = (words ^ (words >> shift)) & np.uint32(mask)
        words ^= differing ^ (differing << shift)
