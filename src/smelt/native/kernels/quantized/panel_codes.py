"""Codes of weights in panels of columns, made once for all programs that read the same weights."""

from __future__ import annotations

import weakref

import numpy as np

from smelt.native.kernels.quantized.weight_blocks import Blocks

PANEL = 16
"""The columns of a panel."""

LINE = 64
"""The bytes of a cache line, at which the first code stands."""

_Key = tuple[int, tuple[int, ...], tuple[int, ...], Blocks, int]
_made: dict[_Key, tuple[weakref.ref[np.ndarray], np.ndarray]] = {}
"""Panels that are in use, and the array that each was made of, by the address and strides of that
array and by what ``panel_codes`` gets. The same bytes may be blocks of 4-bit or of 8-bit codes.

As long as panels are in use, that array stays, so that no other array gets its address."""


def panel_codes(codes: np.ndarray, blocks: Blocks, width: int) -> np.ndarray:
    """Return the bytes of ``codes``, [columns, blocks, bytes], in panels of columns.

    The order is panel, block, word, column, and the bytes of a word. Columns are padded to a
    multiple of ``width``. Programs with the same codes get the same array.
    """
    key = (codes.ctypes.data, codes.shape, codes.strides, blocks, width)
    known = _made.get(key)
    panels = None if known is None else known[0]()
    if panels is None:
        panels = _panels(codes.reshape(blocks.columns, -1), blocks, width)
        _made[key] = weakref.ref(panels, lambda _: _made.pop(key, None)), codes
    return panels


def _panels(rows: np.ndarray, blocks: Blocks, width: int) -> np.ndarray:
    """Return new panels of ``rows``, the packed codes of each column."""
    columns = -(-blocks.columns // width) * width
    words = blocks.row * blocks.bits // 32
    memory = np.empty(columns * words * 4 + LINE, np.uint8)
    first = -memory.ctypes.data % LINE
    made = memory[first : first + columns * words * 4].view("<u4").reshape(-1, words, PANEL)
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
