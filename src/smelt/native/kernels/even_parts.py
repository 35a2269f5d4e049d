"""Sizes cut into parts of nearly equal length, by how many registers a CPU has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from smelt.native.kernels.vector import MOST_LANES
from smelt.native.writer import Writer
from smelt.program.run_sizes import Size, highest

WIDE, MORE_SUMS = "LANES == 16", 16
"""As the preprocessor says it, where there are 32 registers, and the sums that a tile keeps there.
"""


def by_registers(
    body: Writer, few: Sequence[Part], many: Sequence[Part]
) -> Iterator[tuple[str, Sequence[Part]]]:
    """``few``, and where there are more registers ``many``, each with when it is compiled: what is
    written in turn stands for either."""
    if few == many:
        yield "", few
        return
    for when, head, parts in ((WIDE, f"#if {WIDE}", many), (f"!({WIDE})", "#else", few)):
        body.line(head)
        yield when, parts
    body.line("#endif")


def emit_vectors(
    body: Writer, columns: int, when: str, tile: Callable[[int, str, str], None]
) -> None:
    """A ``tile`` of two vectors at column ``l`` of ``wide``; of one where that holds what is left,
    as there only is with more registers. ``columns`` are those of all panels of ``2 * LANES``."""
    body.line("const ptrdiff_t left = wide - l;")
    if 0 < columns % (2 * MOST_LANES) <= MOST_LANES and when != f"!({WIDE})":
        if not when:
            body.line(f"#if {WIDE}")
        with body.block("if (left <= LANES)"):
            tile(1, "0, left", WIDE)
        body.line("else")
        if not when:
            body.line("#endif")
    tile(2, "0, left < 2 * LANES ? left : 2 * LANES", when)


@dataclass(frozen=True, slots=True)
class Part:
    """``count`` equal parts of ``length`` from ``first`` on."""

    first: int
    length: int
    count: int


def even_parts(size: int, most: int) -> list[Part]:
    """``size`` cut into as few parts of at most ``most`` as can be, of nearly equal length."""
    count = -(-size // most)
    if count == 0:
        return []
    length, longer = divmod(size, count)
    parts = [Part(0, length + 1, longer), Part(longer * (length + 1), length, count - longer)]
    return [part for part in parts if part.count]


def parts_of_run(size: int, most: int) -> list[Part]:
    """``even_parts``; of a size that each run has of its own, parts of ``most``, of 2 and of 1."""
    if not isinstance(size, Size):
        return even_parts(size, most)
    parts, first, left = [], 0, size
    for length in (most, 2, 1):
        if highest(left) >= length:
            parts.append(Part(first, length, left // length))
            first, left = first + left // length * length, left % length
    return parts
