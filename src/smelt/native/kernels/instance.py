"""One instruction as kernels ask about it."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import InternalError
from smelt.native.types import C_TYPES, CType
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import AttributeValue, Instruction, Program, Slot


@dataclass
class Instance:
    """One instruction as kernels ask about it; its sizes are numbers, or stand for such."""

    program: Program
    instruction: Instruction

    @property
    def attributes(self) -> dict[str, AttributeValue | DotDims]:
        """The attributes of the instruction."""
        return dict(self.instruction.attributes)

    def slot(self, position: int) -> Slot | None:
        """The slot of an input, None if it is absent."""
        inputs = self.instruction.inputs
        if position >= len(inputs) or inputs[position] < 0:
            return None
        return self.program.slots[inputs[position]]

    def view(self, position: int) -> tuple[int, ...]:
        """Where a loop reads an input that ``read_slices`` made of a Slice: the first element, then
        the strides. Nothing for another, which is read as it lies."""
        name = f"view{position}"
        return self.ints(name) if name in self.instruction.attributes else ()

    @property
    def stand_for(self) -> tuple[int, ...]:
        """The slots that the inputs stand for: themselves, or slices of them."""
        stand_for = "reads" in self.instruction.attributes
        return self.ints("reads") if stand_for else self.instruction.inputs

    def shape(self, position: int) -> tuple[int, ...]:
        """The shape of an input that is present."""
        slot = self.slot(position)
        if slot is None:
            raise InternalError("E960", f"{self.instruction.op} has no input {position}")
        return static(slot)

    def output_shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of an output."""
        return static(self.program.slots[self.instruction.outputs[position]])

    def type(self, position: int = 0) -> CType:
        """The C type of an input that is present."""
        return C_TYPES[self.program.slots[self.instruction.inputs[position]].dtype]

    def ints(self, name: str) -> tuple[int, ...]:
        """An attribute that holds integers."""
        return self.instruction.ints(name)

    def int(self, name: str) -> int:
        """An attribute that holds one integer."""
        value = self.instruction.attributes[name]
        if not isinstance(value, int):
            raise InternalError("E960", f"{self.instruction.op}.{name} holds no integer")
        return int(value)

    def float(self, name: str) -> float:
        """An attribute that holds one number."""
        value = self.instruction.attributes[name]
        if not isinstance(value, int | float):
            raise InternalError("E960", f"{self.instruction.op}.{name} holds no number")
        return float(value)


def static(slot: Slot) -> tuple[int, ...]:
    """The shape of a slot; symbolic dims were refused before (InternalError E960 otherwise)."""
    try:
        return slot.sizes
    except ValueError as error:
        raise InternalError("E960", f"a kernel is asked about open sizes: {error}") from error
