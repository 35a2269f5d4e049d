"""The view of one instruction that kernels work with."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import InternalError
from smelt.native.types import C_TYPES, CType
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program, Slot


@dataclass
class Instance:
    """One instruction of a program; its sizes are numbers or run-time ``Size`` values."""

    program: Program
    instruction: Instruction

    @property
    def attributes(self) -> dict[str, AttributeValue | DotDims]:
        """The attributes of the instruction."""
        return dict(self.instruction.attributes)

    def slot(self, position: int) -> Slot | None:
        """Return the slot of an input, None if it is absent."""
        inputs = self.instruction.inputs
        if position >= len(inputs) or inputs[position] < 0:
            return None
        return self.program.slots[inputs[position]]

    def view(self, position: int) -> tuple[int, ...]:
        """Return ``(offset, *strides)`` by which input ``position`` is read straight from the
        source of a Slice that was removed; ``()`` if no Slice was.
        """
        name = f"view{position}"
        return self.ints(name) if name in self.instruction.attributes else ()

    @property
    def inputs_before_slices(self) -> tuple[int, ...]:
        """The inputs before ``read_slices`` replaced results of Slices by their sources."""
        has_sources = "reads" in self.instruction.attributes
        return self.ints("reads") if has_sources else self.instruction.inputs

    def shape(self, position: int) -> tuple[int, ...]:
        """Return the shape of a present input."""
        slot = self.slot(position)
        if slot is None:
            raise InternalError("E960", f"{self.instruction.op} has no input {position}")
        return static(slot)

    def output_shape(self, position: int = 0) -> tuple[int, ...]:
        """Return the shape of an output."""
        return static(self.program.slots[self.instruction.outputs[position]])

    def is_read(self, position: int) -> bool:
        """True if an instruction reads an output, or if it is a result of the program."""
        slot, program = self.instruction.outputs[position], self.program
        return slot in program.outputs or any(slot in each.inputs for each in program.instructions)

    def type(self, position: int = 0) -> CType:
        """Return the C type of a present input."""
        return C_TYPES[self.program.slots[self.instruction.inputs[position]].dtype]

    def ints(self, name: str) -> tuple[int, ...]:
        """Return an attribute that holds integers."""
        return self.instruction.ints(name)

    def int(self, name: str) -> int:
        """Return an attribute that holds one integer."""
        value = self.instruction.attributes[name]
        if not isinstance(value, int):
            raise InternalError("E960", f"{self.instruction.op}.{name} is not an integer")
        return int(value)

    def float(self, name: str) -> float:
        """Return an attribute that holds one number."""
        value = self.instruction.attributes[name]
        if not isinstance(value, int | float):
            raise InternalError("E960", f"{self.instruction.op}.{name} is not a number")
        return float(value)


def static(slot: Slot) -> tuple[int, ...]:
    """Return the shape of a slot; raises InternalError E960 for symbolic dims."""
    try:
        return slot.sizes
    except ValueError as error:
        raise InternalError("E960", f"a kernel is asked about open sizes: {error}") from error
