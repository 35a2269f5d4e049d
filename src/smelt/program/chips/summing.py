"""Splits a long sum into parts: each part adds some terms to the partial sum of the parts before.

It is for sums whose terms do not fit in a memory together, even for one result element, such as the
rows of a wide product. Each part reads only its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from smelt.program.chips.tile_regions import Box, Region, RegionOf
from smelt.program.instruction import Instruction, Program, Slot

SUMMED = -1
"""The number of the axis of summed terms in a tiling, where it is always the innermost axis."""

STAGE = "stage"
"""The attribute that tells an operator which part of the sum it is: first, middle or last."""


@dataclass(frozen=True, slots=True)
class Summing:
    """How an operator sums in parts.

    ``length`` returns the number of terms. ``region``, called with the axis ``SUMMED``, returns the
    boxes of the operands that some of the terms read. ``carried`` is the position of the operand
    with which the sum starts, such as a bias; from the second part on, that operand is the partial
    sum, of type ``dtype``. Part sizes are multiples of ``step``. The last part applies the
    epilogue, such as a Relu.
    """

    length: Callable[[Program, Instruction], int]
    region: RegionOf
    carried: int
    dtype: ir.DataType
    step: int = 1

    def partial_sum(self, part: Slot) -> Slot:
        """Return a slot for the partial sum of the result ``part``."""
        return replace(part, dtype=self.dtype, quantization=None, name=f"{part.name} so far")

    def sizes(self, program: Program, instruction: Instruction) -> Iterator[int]:
        """Yield part sizes, each about half of the previous one."""
        length = self.length(program, instruction)
        size = length
        while size > self.step:
            size = -(-size // (2 * self.step)) * self.step
            if size < length:
                yield size

    def parts(self, program: Program, instruction: Instruction, size: int) -> list[Region] | None:
        """Return the regions that parts of ``size`` terms read; None if a part has no region."""
        length = self.length(program, instruction)
        bounds = [(start, min(start + size, length)) for start in range(0, length, size)]
        regions = [self.region(program, instruction, SUMMED, *cut) for cut in bounds]
        return None if None in regions else [cut for cut in regions if cut is not None]


def chain(
    program: Program, instruction: Instruction, result: int, parts: list[Region], summing: Summing
) -> Iterator[tuple[Instruction, Mapping[int, Box]]]:
    """Yield the parts of ``instruction``, each with the boxes that it reads of its operands.

    The last part writes the slot ``result``; the partial sums get new slots of ``program``.
    """
    previous_sum: int | None = None
    for number, part in enumerate(parts):
        inputs, boxes = list(instruction.inputs), dict(part.boxes)
        inputs += [-1] * (summing.carried + 1 - len(inputs))
        is_last = number + 1 == len(parts)
        if previous_sum is not None:
            inputs[summing.carried] = previous_sum
        if is_last:
            stage, previous_sum = "last", result
        else:
            stage = "middle" if number else "first"
            previous_sum = program.new_slot(summing.partial_sum(program.slots[result]))
        attributes = {**instruction.attributes, **part.attributes, STAGE: stage}
        outputs = (previous_sum, *instruction.outputs[1:])
        yield (
            replace(instruction, inputs=tuple(inputs), outputs=outputs, attributes=attributes),
            boxes,
        )
