"""A Program as text, one line per instruction."""

from __future__ import annotations

from collections.abc import Iterator

from smelt.program.instruction import Program, Slot


def program_lines(program: Program, indent: str = "") -> Iterator[str]:
    """Yield the lines of ``program``: slots with their types, instructions in order, bodies
    indented.

    Attributes are written as in Python; constants are named, not printed.
    """
    for word, slots in (("input", program.inputs), ("constant", tuple(program.constants))):
        yield from (f"{indent}{word} %{n}: {described(program.slots[n])}" for n in slots)
    for step, instruction in enumerate(program.instructions):
        results = ", ".join(
            f"%{n}: {described(program.slots[n])}" for n in instruction.outputs if n >= 0
        )
        operands = ", ".join(f"%{n}" if n >= 0 else "-" for n in instruction.inputs)
        attributes = "".join(f" {name}={value!r}" for name, value in instruction.attributes.items())
        origin = f"  # {instruction.origin}" if instruction.origin else ""
        yield f"{indent}{step}: {results} = {instruction.op}({operands}){attributes}{origin}"
        for body in instruction.bodies:
            yield from program_lines(body.program, indent + "    ")
    yield f"{indent}return {', '.join(f'%{n}' for n in program.outputs)}"


def described(slot: Slot) -> str:
    """Return the name, element type and shape of ``slot``, and its memory space and scale if
    set."""
    shape = ",".join(map(str, slot.shape))
    text = f"{slot.name!r} {slot.dtype.name.lower()}[{shape}]"
    text += f" in {slot.space}" if slot.space else ""
    if slot.quantization is not None and slot.quantization.axis is None:
        scale, zero = slot.quantization.scale[0], slot.quantization.zero_point[0]
        text += f" scale {scale:g} zero {zero}"
    return text
