"""Filters as rows of tiles: constant ones lie in blocks, term by term, as tiles read them.

Weights as models have them are as many streams as a tile has rows. One stream comes from memory in
less time, and from there it comes in each run of a large model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from smelt.native.kernels.convolution.parts import constant_weights
from smelt.native.kernels.convolution.window import channels_of
from smelt.native.kernels.even_parts import Part, by_registers, even_parts
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector_dot import ROWS, WIDE_ROWS
from smelt.native.kernels.vector_tile import plus

BLOCK = 12
"""Filters of a block at most: a tile where there are 32 registers, else two."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a tile: ``count`` filters from ``o`` on, where there are the registers that
    ``when`` says. From ``weights`` on, terms are ``block`` elements apart and filters neighbours;
    with a block of 0, terms are neighbours and filters ``terms`` apart.
    """

    count: int
    weights: str
    block: int
    when: str


def pack(weights: np.ndarray) -> np.ndarray:
    """``[group, filter, channel, position]`` as blocks ``[channel, position][filter]``."""
    blocks = [
        group[o : o + part.length].reshape(part.length, -1).T.reshape(-1)
        for group in weights
        for part in even_parts(weights.shape[1], BLOCK)
        for o in range(part.first, part.first + part.length * part.count, part.length)
    ]
    return np.concatenate(blocks)


def packed(cx: KernelContext) -> str:
    """The weights by blocks; "" if they are computed."""
    weights = constant_weights(cx)
    return "" if weights is None else cx.constant(pack(weights), cx.type(1))


def tiles(cx: KernelContext, terms: int, given: str, *, shared: bool = False) -> Iterator[Rows]:
    """The tiles of all filters of group ``g``, whose weights are ``given`` by blocks or as the
    model has them: what is written for each stands in loops over those of its size, which parts
    of a run may share."""
    filters, body = channels_of(cx)[1], cx.body
    if not given:
        weights = plus(cx.input(1).name, f"(g * {filters} + o)", terms)
        yield from _of_block(cx, Part(0, filters, 1), weights, "", shared)
        return
    for block in even_parts(filters, BLOCK):
        end = block.first + block.length * block.count
        with (body.shared_loop if shared else body.loop)("from", end, block.first, block.length):
            weights = f"{given} + (g * {filters} + from) * {terms} + o - from"
            yield from _of_block(cx, block, weights, "from", shared=False)


def _of_block(
    cx: KernelContext, block: Part, weights: str, start: str, shared: bool
) -> Iterator[Rows]:
    """Tiles of a block from ``start`` on; without one, of all filters, which are in no block."""
    few = even_parts(block.length, ROWS)
    more = even_parts(block.length, BLOCK if start else WIDE_ROWS)
    loop = cx.body.shared_loop if shared else cx.body.loop
    for when, parts in by_registers(cx.body, few, more):
        for part in parts:
            end = part.first + part.length * part.count
            first, last = (f"{start} + {at}" if start else at for at in (part.first, end))
            with loop("o", last, first, part.length):
                yield Rows(part.length, weights, block.length if start else 0, when)
