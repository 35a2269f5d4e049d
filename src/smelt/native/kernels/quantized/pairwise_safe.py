"""Pairwise-safe int8 weights for AVX2 without VNNI: sums of pairs of products fit 16 bits.

``pmaddubsw`` multiplies 32 bytes at once and adds the products in pairs, but saturates at 16 bits.
Two weights of one sign are safe if their sum is at most 128. In trained weights, all but a few
percent of pairs are safe. In the others, the first weight is clamped to the largest safe value; the
difference, its excess, is multiplied separately after the loop, so sums stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.types import C_TYPES

SAFE = 128
"""The largest safe sum of two weights of one sign: 255 times it fits 16 bits."""

MOST_EXCESS = 1 / 8
"""The largest share of unsafe pairs; with a larger one, 16-bit products are as fast."""

FEWEST_PIXELS = 48
"""The fewest pixels of an image or band; with fewer, clamping costs more than it saves."""

PAIRWISE_TEXT = """#if SUMS == 8
#define PAIRWISE 1
typedef char all_chars __attribute__((vector_size(32), may_alias));
#define BYTES_MULTIPLIED(b, a) \\
    ((pairs)__builtin_ia32_pmaddubsw256((all_chars)(b), (all_chars)(a)))
#define ADD_BYTES(s, b, a) s = ADDED(s, MULTIPLIED(BYTES_MULTIPLIED(b, a), ones))
#else
#define PAIRWISE 0
#endif
"""
"""``PAIRWISE`` is 1 if the CPU has ``pmaddubsw``. ``ADD_BYTES(s, b, a)`` adds to the sums ``s`` the
dot products of four unsigned bytes ``b`` and four clamped bytes ``a``, by a variable ``ones``."""

CLAMP_TEXT = """static IF_CALLED void clamp_quads(const int8_t *restrict from, ptrdiff_t quads,
    ptrdiff_t rows, const int32_t *first, const int32_t *restrict excess, int8_t *restrict to)
{
    memcpy(to, from, (size_t)(4 * quads * rows));
    for (ptrdiff_t m = 0; m < rows; ++m)
        for (ptrdiff_t e = first[m]; e < first[m + 1]; ++e) {
            int8_t *held = to + ((excess[e] >> 10) * rows + m) * 4 + (excess[e] >> 8 & 3);
            *held = (int8_t)(*held - (int8_t)(excess[e] & 255));
        }
}
"""


@dataclass(frozen=True)
class Excess:
    """The excess of clamped weights, by filter; filter f has ``numbers[first[f]:first[f + 1]]``.

    Each number packs the index of a group of four (from bit 10 on), the byte in it (2 bits), and
    the excess (a signed byte).
    """

    first: list[int]
    numbers: list[int]


def excess_of(filters: np.ndarray, pixels: int = FEWEST_PIXELS) -> Excess | None:
    """Return the excess of int8 weights ``[filter, quad, 4]``, None if clamping is not worth it.

    It is not if few ``pixels`` are computed at a time, or if many pairs are unsafe. Two weights of
    one sign lose the part of their sum beyond ``SAFE``; the first of both is clamped.
    """
    if pixels < FEWEST_PIXELS:
        return None
    pairs = filters.astype(np.int32).reshape(len(filters), -1, 2)
    sums = pairs.sum(2)
    excess = np.where((pairs > 0).all(2), np.maximum(sums - SAFE, 0), 0)
    excess = np.where((pairs < 0).all(2), np.minimum(sums + SAFE, 0), excess)
    filter_, pair = np.nonzero(excess)
    if filter_.size > MOST_EXCESS * sums.size:
        return None
    numbers = pair // 2 << 10 | pair % 2 * 2 << 8 | excess[filter_, pair] & 255
    first = np.searchsorted(filter_, np.arange(len(filters) + 1))
    return Excess(first.tolist(), numbers.tolist())


def declare_pairwise(cx: KernelContext) -> None:
    """Let the kernel use ``PAIRWISE`` and ``ADD_BYTES``."""
    declare(cx)
    cx.call("PAIRWISE", PAIRWISE_TEXT)


def clamp_weights(cx: KernelContext) -> str:
    """Return the name of a function ``(from, quads, rows, first, excess, to)`` that clamps weights.

    ``first`` is the entry of the first of the ``rows`` filters.
    """
    declare_pairwise(cx)
    return cx.call("clamp_quads", CLAMP_TEXT)


def tables(cx: KernelContext, excess: Excess) -> tuple[str, str]:
    """Return the names of constants with both fields; empty ones get a 0, because C has no empty
    arrays.
    """
    first, numbers = (
        cx.constant(np.asarray(field or [0], np.int32), C_TYPES[ir.DataType.INT32])
        for field in (excess.first, excess.numbers)
    )
    return first, numbers


def add_excess(out: Writer, rows: int, vectors: Sequence[str]) -> None:
    """Write the addition of the excess of each row, times its pixels, to the sums of the row.

    An entry of ``excess`` has the lost part of a weight in its low 8 bits, the place of the weight
    in a group of four in the next 2, and the number of the group in the others.

    The C reads ``image``, ``steps`` (the offset in it of each group of four) and ``vectors`` (the
    offsets of groups of pixels).
    """
    for row in range(rows):
        with out.block(f"for (ptrdiff_t e = first[{row}]; e < first[{row + 1}]; ++e)"):
            out.line("const unsigned char *p = image + steps[excess[e] >> 10]")
            out.line("    + (excess[e] >> 8 & 3);")
            out.line("const sums lost = zero + (int8_t)(excess[e] & 255);")
            for v, at in enumerate(vectors):
                read = f"*(const sums_anywhere *)(const void *)(p + {at}) & 255"
                out.line(f"ADD_HALVES(s{row}_{v}, (pairs)lost, (pairs)({read}));")
