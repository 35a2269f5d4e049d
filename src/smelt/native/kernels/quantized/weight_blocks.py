"""The weights of MatMulNBits: columns of blocks of codes, and the positions of its inputs."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.instance import Instance

SCALES, ZEROS, PLACES, BIAS = 2, 3, 4, 5
"""The positions of inputs."""

ROUNDED_TO_INT8 = 4
"""The ``accuracy_level`` with which a kernel may round the left operand to int8."""

LONGEST = 2**16
"""The longest block that is rounded: its sum of 127 times 255 stays below 2**31."""


@dataclass(frozen=True)
class Blocks:
    """The weights of an instruction: ``columns`` of blocks of ``size`` codes, of which ``depth``
    are used. A code has ``bits``. ``rounds``: the left operand may be rounded to int8.
    """

    columns: int
    depth: int
    size: int
    bits: int
    rounds: bool

    @staticmethod
    def of(instance: Instance) -> Blocks:
        """Return the blocks of an instruction."""
        columns, depth, size, bits = (
            instance.int(each) for each in ("N", "K", "block_size", "bits")
        )
        rounds = instance.int("accuracy_level") == ROUNDED_TO_INT8 and size <= LONGEST
        return Blocks(columns, depth, size, bits, rounds)

    @property
    def count(self) -> int:
        """The number of blocks of a column; the last one may be padded."""
        return -(-self.depth // self.size)

    @property
    def row(self) -> int:
        """The number of elements in a row of the left operand, padded to whole blocks."""
        return self.count * self.size
