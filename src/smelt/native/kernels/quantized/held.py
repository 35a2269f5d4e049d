"""Pairs of weights whose products with any two bytes add up within 16 bits, on AVX2 without VNNI.

``pmaddubsw`` multiplies 32 bytes at once and adds the products in pairs, but saturates at 16 bits.
Two weights of one sign are safe up to 128 together. Of trained weights all but a few in a hundred
pairs are; in the others the first weight is held to what is safe, and what it lost, its excess, is
multiplied on its own at the end of the sums, which stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.quads import declare
from smelt.native.types import C_TYPES
from smelt.native.writer import Writer

SAFE = 128
"""The most that two weights of one sign may be together: 255 times it fits 16 bits."""

MOST_EXCESS = 1 / 8
"""Of pairs: where more are not safe, products of 16 bits are as fast."""

FEWEST_PIXELS = 48
"""Of an image or band: with fewer, weights are held too often for what that saves."""

HELD = """#if SUMS == 8
#define HOLDS 1
typedef char all_chars __attribute__((vector_size(32), may_alias));
#define BYTES_MULTIPLIED(b, a) \\
    ((pairs)__builtin_ia32_pmaddubsw256((all_chars)(b), (all_chars)(a)))
#define ADD_BYTES(s, b, a) s = ADDED(s, MULTIPLIED(BYTES_MULTIPLIED(b, a), ones))
#else
#define HOLDS 0
#endif
"""
"""``HOLDS`` if the CPU has the products; ``ADD_BYTES`` adds to sums those of quads of unsigned
bytes ``b`` by held ones ``a``, with ``ones`` at hand."""

HOLD = """static IF_CALLED void hold_quads(const int8_t *restrict from, ptrdiff_t quads,
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
    """What is lost: ``numbers`` hold which quad (from bit 10 on), which of its bytes (2 bits) and
    how much (a signed byte). Those of a filter begin at its place in ``first`` and end at the next.
    """

    first: list[int]
    numbers: list[int]


def excess_of(filters: np.ndarray, pixels: int = FEWEST_PIXELS) -> Excess | None:
    """That of ``[filter, quad, 4]`` of int8; None where holding is not worth it: for few ``pixels``
    that are computed at a time, or if many pairs are not safe."""
    if pixels < FEWEST_PIXELS:
        return None
    pairs = filters.astype(np.int32).reshape(len(filters), -1, 2)
    sums = pairs.sum(2)
    lost = np.where((pairs > 0).all(2), np.maximum(sums - SAFE, 0), 0)
    lost = np.where((pairs < 0).all(2), np.minimum(sums + SAFE, 0), lost)
    filter_, pair = np.nonzero(lost)
    if filter_.size > MOST_EXCESS * sums.size:
        return None
    numbers = pair // 2 << 10 | pair % 2 * 2 << 8 | lost[filter_, pair] & 255
    first = np.searchsorted(filter_, np.arange(len(filters) + 1))
    return Excess(first.tolist(), numbers.tolist())


def declare_held(cx: KernelContext) -> None:
    """Let the kernel use ``HOLDS`` and ``ADD_BYTES``."""
    declare(cx)
    cx.call("HOLDS", HELD)


def hold(cx: KernelContext) -> str:
    """A function ``(from, quads, rows, first, excess, to)``: the quads of ``rows`` filters, held.

    ``first`` is that of the first of them.
    """
    declare_held(cx)
    return cx.call("hold_quads", HOLD)


def tables(cx: KernelContext, excess: Excess) -> tuple[str, str]:
    """The names of constants of the two fields; no array of C is empty."""
    first, numbers = (
        cx.constant(np.asarray(field or [0], np.int32), C_TYPES[ir.DataType.INT32])
        for field in (excess.first, excess.numbers)
    )
    return first, numbers


def add_excess(out: Writer, rows: int, vectors: Sequence[str]) -> None:
    """Add that of each row to its sums, from ``image``, ``steps`` to where quads lie in it, and
    ``vectors``, where the groups of pixels do."""
    for m in range(rows):
        with out.block(f"for (ptrdiff_t e = first[{m}]; e < first[{m + 1}]; ++e)"):
            out.line("const unsigned char *p = image + steps[excess[e] >> 10]")
            out.line("    + (excess[e] >> 8 & 3);")
            out.line("const sums lost = zero + (int8_t)(excess[e] & 255);")
            for v, at in enumerate(vectors):
                read = f"*(const sums_anywhere *)(const void *)(p + {at}) & 255"
                out.line(f"ADD_HALVES(s{m}_{v}, (pairs)lost, (pairs)({read}));")
