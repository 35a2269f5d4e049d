"""Filters as rows of the micro-kernel; constant ones are packed in blocks, term by term.

In a model's layout, a tile reads as many streams of weights as it has rows. One stream comes from
memory in less time, and weights of a large model come from there in each run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.parts import constant_weights
from smelt.native.kernels.convolution.window import channels_of
from smelt.native.kernels.epilogue import plus
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.register_blocks import EqualBlocks, by_registers, even_blocks
from smelt.native.kernels.vector_dot import ROWS, WIDE_ROWS

BLOCK = 12
"""The most filters of a block: one tile with 32 registers, else two."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a tile: ``count`` filters from ``o`` on, under the register condition ``when``.

    From ``weights`` on, terms are ``block`` elements apart and filters are neighbors. With a block
    of 0, terms are neighbors and filters ``terms`` apart.
    """

    count: int
    weights: str
    block: int
    when: str


def pack(weights: np.ndarray) -> np.ndarray:
    """Return the weights ``[group, filter, channel, position]`` packed in blocks of filters.

    A block is ``[channel, position][filter]``.
    """
    blocks = [
        group[o : o + part.length].reshape(part.length, -1).T.reshape(-1)
        for group in weights
        for part in even_blocks(weights.shape[1], BLOCK)
        for o in part.starts()
    ]
    return np.concatenate(blocks)


def packed(cx: KernelContext) -> str:
    """Return the packed weights; empty if they are not constant."""
    weights = constant_weights(cx)
    return "" if weights is None else cx.constant(pack(weights), cx.type(1))


def tiles(
    cx: KernelContext, terms: int, weights_pointer: str, *, shared: bool = False
) -> Iterator[Rows]:
    """Yield the tiles of all filters of group ``g``, inside of loops over tiles of equal size.

    ``weights_pointer`` is the C pointer to packed weights, "" for weights in the model's layout.
    With ``shared``, the loops are split into shards.
    """
    filters, body = channels_of(cx)[1], cx.body
    if not weights_pointer:
        weights = plus(cx.input(1).name, f"(g * {filters} + o)", terms)
        yield from _block_tiles(cx, EqualBlocks(0, filters, 1), weights, "", shared)
        return
    for block in even_blocks(filters, BLOCK):
        end = block.end
        with (body.shared_loop if shared else body.loop)("from", end, block.first, block.length):
            weights = f"{weights_pointer} + (g * {filters} + from) * {terms} + o - from"
            yield from _block_tiles(cx, block, weights, "from", shared=False)


def _block_tiles(
    cx: KernelContext, block: EqualBlocks, weights: str, start: str, shared: bool
) -> Iterator[Rows]:
    """Yield the tiles of ``block``, inside of loops over tiles of equal size.

    ``start`` is the C variable of the first filter of the block, "" if the block is all filters.
    """
    narrow = even_blocks(block.length, ROWS)
    wide = even_blocks(block.length, BLOCK if start else WIDE_ROWS)
    loop = cx.body.shared_loop if shared else cx.body.loop
    for when, parts in by_registers(cx.body, narrow, wide):
        for part in parts:
            first, end = (f"{start} + {at}" if start else at for at in (part.first, part.end))
            with loop("o", end, first, part.length):
                yield Rows(part.length, weights, block.length if start else 0, when)
