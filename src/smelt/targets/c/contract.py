"""The interface in the C header: names, C types, shapes, bytes, quantization."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from smelt.ir.quantization import Quantization
from smelt.native.emit.names import comment
from smelt.native.types import C_TYPES
from smelt.program.instruction import Program, RunSize, Slot
from smelt.program.run_sizes import highest

SCHEMA = "smelt.c/1"
"""The schema of the interface file."""

INTERFACE_VERSION = 2
"""Incremented when callers must change; version 1 had no shapes, types and scales."""


@dataclass(frozen=True, slots=True)
class Port:
    """One tensor of the interface, described by macros ``NAME_INPUT0_...``."""

    number: int
    slot: Slot
    names: Mapping[str, str]
    """C variable of a runtime size to its name in the model, for comments."""

    @property
    def note(self) -> str:
        """The name, element type and shape, for a comment."""
        shape = ", ".join(self.names.get(str(dim), str(dim)) for dim in self.slot.shape)
        return f"{comment(self.slot.name)} {self.slot.dtype.name.lower()}[{shape}]"

    @property
    def macros(self) -> dict[str, str]:
        """The values of the macros, by the last part of their names."""
        stored = C_TYPES[self.slot.dtype]
        values = {
            "BYTES": str(self.slot.most_bytes),
            "TYPE": stored.name,
            "RANK": str(len(self.slot.shape)),
        }
        if self.slot.shape:
            values["SHAPE"] = _initializer(map(highest, self.slot.sizes))
        return values | _quantization(self.slot.quantization)

    @property
    def c_type(self) -> str:
        """The C element type of an array that holds the tensor."""
        return C_TYPES[self.slot.dtype].name

    @property
    def length(self) -> int:
        """The number of elements of that array, at least one, because C has no empty arrays."""
        return max(self.slot.most_bytes // C_TYPES[self.slot.dtype].size, 1)

    @property
    def row_length(self) -> int:
        """The number of elements along the last dim, at least one."""
        return max(highest(self.slot.sizes[-1]), 1) if self.slot.shape else 1

    @property
    def rows(self) -> int:
        """The number of rows along the last dim."""
        return self.length // self.row_length

    @property
    def is_plain(self) -> bool:
        """True if C computes with the elements as stored; False for halves and other codes."""
        return C_TYPES[self.slot.dtype].computed is None


def _quantization(quantization: Quantization | None) -> dict[str, str]:
    """Return the macros of scale and zero point, which tell callers that the integer ``q`` stands
    for ``(q - ZERO_POINT) * SCALE``; none without quantization.
    """
    if quantization is None:
        return {}
    scales = [f"{scale:.9g}" for scale in quantization.scale]
    scales = [(s if "." in s or "e" in s else f"{s}.0") + "f" for s in scales]
    if quantization.axis is None:
        return {"SCALE": scales[0], "ZERO_POINT": str(quantization.zero_point[0])}
    return {
        "SCALES": _initializer(scales),
        "ZERO_POINTS": _initializer(quantization.zero_point),
        "QUANTIZED_AXIS": str(quantization.axis),
    }


def _initializer(items: Iterable[object]) -> str:
    """Return ``{a, b}``, a C initializer."""
    return "{" + ", ".join(map(str, items)) + "}"


def ports(program: Program, slots: tuple[int, ...]) -> list[Port]:
    """Return the interface tensors in ``slots``, in order."""
    sizes = (*program.input_sizes, *program.data_dependent_sizes)
    names = {str(each.size): comment(each.name) for each in sizes}
    return [Port(number, program.slots[slot], names) for number, slot in enumerate(slots)]


@dataclass(frozen=True, slots=True)
class SizeMacros:
    """A size that a run receives or returns, described by macros ``NAME_SIZE0_...``."""

    number: int
    name: str
    variable: str
    least: int
    most: int


def sizes_of(sizes: Iterable[RunSize]) -> list[SizeMacros]:
    """Return the sizes in order, numbered."""
    return [
        SizeMacros(number, comment(each.name), str(each.size), each.size.low, each.size.high)
        for number, each in enumerate(sizes)
    ]
