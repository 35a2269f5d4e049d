"""Blocked loops, for arrays whose contiguous dim differs between read and write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod

from smelt.native.emit.writer import Writer

BLOCK = 16
"""The block size in rows and columns: as many floats fill a cache line."""

FEWEST = 8
"""The fewest rows and columns for which blocks pay."""

FROM = 1 << 14
"""The fewest elements for which blocks pay: cache lines of fewer stay in the first-level cache."""


def transposed_loop(
    sizes: Sequence[int], write: Sequence[int], reads: Sequence[Sequence[int]]
) -> int | None:
    """Return the loop along which an array is read contiguously, other than the last loop.

    ``write`` and ``reads`` are strides; the last loop writes contiguously. None if there is no such
    loop, or if blocks do not pay.
    """
    numbers = (*sizes, *write, *(stride for read in reads for stride in read))
    if len(sizes) < 2 or not all(type(number) is int for number in numbers):
        return None
    if write[-1] != 1 or sizes[-1] < FEWEST or prod(sizes) < FROM:
        return None
    for read in reads:
        dense = [i for i, stride in enumerate(read[:-1]) if stride == 1 and sizes[i] >= FEWEST]
        if dense and abs(read[-1]) >= BLOCK:
            return dense[0]
    return None


@contextmanager
def blocked(
    body: Writer, variables: Sequence[str], sizes: Sequence[int], read_loop: int
) -> Iterator[None]:
    """Write all loops, with loop ``read_loop`` and the last loop in blocks, which read cache lines
    once.

    ```
    for (ptrdiff_t from0 = 0; from0 < 64; from0 += 16) {
        for (ptrdiff_t from1 = 0; from1 < 64; from1 += 16) {
            for (ptrdiff_t i0 = from0; i0 < from0 + 16; ++i0) {
                for (ptrdiff_t i1 = from1; i1 < from1 + 16; ++i1) {
    ```
    """
    pair = (read_loop, len(sizes) - 1)
    others = [i for i in range(len(sizes)) if i not in pair]
    with ExitStack() as stack:
        stack.enter_context(body.loops([variables[i] for i in others], [sizes[i] for i in others]))
        for i in pair:
            stack.enter_context(body.loop(f"from{i}", sizes[i], step=BLOCK))
        for i in pair:
            end = f"from{i} + {BLOCK}"
            stop = end if sizes[i] % BLOCK == 0 else f"({end} < {sizes[i]} ? {end} : {sizes[i]})"
            stack.enter_context(body.loop(variables[i], stop, f"from{i}"))
        yield
