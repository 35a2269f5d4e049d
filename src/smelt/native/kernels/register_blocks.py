"""Register blocking: split sizes into blocks of nearly equal length, by the number of registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from smelt.native.emit.writer import Writer
from smelt.native.kernels.vector import MOST_LANES
from smelt.program.run_sizes import Size, highest

WIDE, MORE_SUMS = "LANES == 16", 16
"""The preprocessor condition for 32 registers, and the accumulators of a micro-kernel with them.
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """The sizes of float micro-kernels on a machine.

    ``rows``: the rows of two vectors in a product with 16 registers. ``pixels``: the pixels of two
    vectors in a convolution, read at constant offsets; None if the C compiler's registers decide.
    ``pixel_major``: products of bytes read images with the channels of a pixel side by side
    (``quantized/pixel_major``). ``small``: convolutions and products of floats call functions that
    all layers share (``shared_product``, ``convolution/shared``).
    """

    rows: int = 6
    pixels: int | None = None
    pixel_major: bool = False
    small: bool = False


WASM_SIMD128 = Machine(rows=4, pixels=6)
"""V8 keeps one of 16 registers to itself and needs one for each product, for there is no fused
multiply-add. Measured in Node 20 over 6 rows, and pixels by pointers: a transformer .88, ResNet-8
.83, a small CNN .75."""

SCALAR = Machine(pixel_major=True)
"""A CPU without vectors."""

_MACHINE: ContextVar[Machine] = ContextVar("machine")
ANY = Machine()
"""Any C compiler and CPU."""


def machine() -> Machine:
    """Return the machine that C is written for; the default suits any C compiler."""
    return _MACHINE.get(ANY)


@contextmanager
def for_machine(chosen: Machine) -> Iterator[None]:
    """Write the C of the ``with`` block for ``chosen``."""
    token = _MACHINE.set(chosen)
    try:
        yield
    finally:
        _MACHINE.reset(token)


def by_registers(
    body: Writer, narrow: Sequence[EqualBlocks], wide: Sequence[EqualBlocks]
) -> Iterator[tuple[str, Sequence[EqualBlocks]]]:
    """Yield ``wide``, the blocks with 32 registers, and ``narrow``, those with 16.

    Each comes with its preprocessor condition, and the caller writes the C of one branch of an
    ``#if``. Equal blocks come once, with an empty condition.
    """
    if narrow == wide:
        yield "", narrow
        return
    for when, head, parts in ((WIDE, f"#if {WIDE}", wide), (f"!({WIDE})", "#else", narrow)):
        body.line(head)
        yield when, parts
    body.line("#endif")


def emit_vectors(
    body: Writer, columns: int, when: str, tile: Callable[[int, str, str], None]
) -> None:
    """Write a tile of two vectors at column ``l``; of one vector if the remaining columns fit it.

    The tile of one vector exists with 32 registers only. ``tile(vectors, stored, when)`` writes a
    tile: ``stored`` is the C range of its columns to store, ``when`` its preprocessor condition.
    ``columns`` is the number of columns of all panels of ``2 * LANES`` together.
    """
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
class EqualBlocks:
    """``count`` blocks of ``length`` each, from ``first`` on."""

    first: int
    length: int
    count: int

    @property
    def end(self) -> int:
        """The position after the last block: ``first + length * count``."""
        return self.first + self.length * self.count

    def starts(self) -> range:
        """Return the positions at which blocks start; sizes are numbers."""
        return range(self.first, self.end, self.length)


def even_blocks(size: int, most: int) -> list[EqualBlocks]:
    """Return ``size`` split into as few blocks of at most ``most`` as possible, of nearly equal
    length.
    """
    count = -(-size // most)
    if count == 0:
        return []
    length, longer = divmod(size, count)
    parts = [
        EqualBlocks(0, length + 1, longer),
        EqualBlocks(longer * (length + 1), length, count - longer),
    ]
    return [part for part in parts if part.count]


def runtime_blocks(size: int, most: int) -> list[EqualBlocks]:
    """Return ``even_blocks``; a run-time size is split into blocks of ``most``, of 2 and of 1."""
    if not isinstance(size, Size):
        return even_blocks(size, most)
    parts, first, remaining = [], 0, size
    for length in (most, 2, 1):
        if highest(remaining) >= length:
            parts.append(EqualBlocks(first, length, remaining // length))
            first, remaining = first + remaining // length * length, remaining % length
    return parts
