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

BLOCK = 16
"""Filters of a block: two tiles where there are 32 registers, else three."""


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
        part.reshape(part.shape[0], -1).T.reshape(-1)
        for group in weights
        for part in np.split(group, range(BLOCK, group.shape[0], BLOCK))
    ]
    return np.concatenate(blocks)


def blocks_of(filters: int) -> list[Part]:
    """Whole blocks, then what is left."""
    whole, rest = divmod(filters, BLOCK)
    parts = (Part(0, BLOCK, whole), Part(whole * BLOCK, rest, 1))
    return [part for part in parts if part.length * part.count]


def tiles(cx: KernelContext, terms: int) -> Iterator[Rows]:
    """The tiles of all filters of group ``g``: what is written for each stands in loops over
    those of its size."""
    filters, weights, body = channels_of(cx)[1], constant_weights(cx), cx.body
    if weights is None:
        given = plus(cx.input(1).name, f"(g * {filters} + o)", terms)
        yield from _of_block(cx, filters, "0", given, 0)
        return
    packed = cx.constant(pack(weights), cx.type(1))
    for block in blocks_of(filters):
        end = block.first + block.length * block.count
        with body.loop("from", end, block.first, block.length):
            given = f"{packed} + (g * {filters} + from) * {terms} + o - from"
            yield from _of_block(cx, block.length, "from", given, block.length)


def _of_block(
    cx: KernelContext, filters: int, start: str, weights: str, block: int
) -> Iterator[Rows]:
    """Tiles of ``filters`` from ``start`` on."""
    few, more = even_parts(filters, ROWS), even_parts(filters, WIDE_ROWS)
    for when, parts in by_registers(cx.body, few, more):
        for part in parts:
            end = part.first + part.length * part.count
            first, last = (f"{start} + {at}" if start != "0" else at for at in (part.first, end))
            with cx.body.loop("o", last, first, part.length):
                yield Rows(part.length, weights, block, when)
