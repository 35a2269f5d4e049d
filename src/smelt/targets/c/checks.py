"""What a run of the C library tests before it computes: pointers, alignment and sizes."""

from __future__ import annotations

from collections.abc import Iterator

from smelt.native.emit.weights import BLOB_ALIGNMENT
from smelt.native.types import C_TYPES
from smelt.program.instruction import Program
from smelt.program.memory import MemoryPlan


def aligned_types(program: Program) -> list[str]:
    """Return the C types of inputs and outputs whose alignment a run tests, each once.

    A CPU may align a type to less than its size: AVR aligns floats to one byte. So the source file
    has a struct for each type, and the offset of its second member is the alignment.
    """
    ports = (program.slots[slot] for slot in (*program.inputs, *program.outputs))
    types = (C_TYPES[port.dtype] for port in ports if port.most_bytes)
    return list(dict.fromkeys(stored.name for stored in types if stored.size > 1))


def pointer_checks(name: str, program: Program, memory: MemoryPlan) -> Iterator[dict[str, str]]:
    """Yield the conditions on pointers that a run of the library ``name`` tests first, with their
    error codes.

    ```
    if ((uintptr_t)inputs[0] % offsetof(struct model_float, value) != 0)
        return MODEL_ERROR_ALIGN;
    ```
    """
    for array, slots in (("inputs", program.inputs), ("outputs", program.outputs)):
        if slots:
            yield {"condition": f"{array} == NULL", "error": "NULL"}
        for number, slot in enumerate(slots):
            if program.slots[slot].most_bytes == 0:
                continue
            yield {"condition": f"{array}[{number}] == NULL", "error": "NULL"}
            stored = C_TYPES[program.slots[slot].dtype]
            if stored.size > 1:
                alignment = f"offsetof(struct {name}_{stored.name}, value)"
                condition = f"(uintptr_t){array}[{number}] % {alignment} != 0"
                yield {"condition": condition, "error": "ALIGN"}
    if memory.arena_bytes:
        yield {"condition": "arena == NULL", "error": "NULL"}
        yield {"condition": f"(uintptr_t)arena % {memory.alignment} != 0", "error": "ALIGN"}


def size_checks(program: Program) -> Iterator[dict[str, str]]:
    """Yield the conditions on sizes that a run receives or returns, with their error codes."""
    if program.input_sizes:
        yield {"condition": "sizes == NULL", "error": "NULL"}
    if program.returned_sizes:
        yield {"condition": "lengths == NULL", "error": "NULL"}
    for number, each in enumerate(program.input_sizes):
        size = f"sizes[{number}]"
        condition = f"{size} < {each.size.low} || {size} > {each.size.high}"
        yield {"condition": condition, "error": "SIZE"}


def weight_checks() -> Iterator[dict[str, str]]:
    """Yield the conditions on the pointer to the weights, with their error codes."""
    yield {"condition": "data == NULL", "error": "NULL"}
    yield {"condition": f"(uintptr_t)data % {BLOB_ALIGNMENT} != 0", "error": "ALIGN"}
