"""A Program as text, one line per instruction."""

from __future__ import annotations

from collections.abc import Iterator

from smelt.program.instruction import Program, Slot


def program_lines(program: Program, indent: str = "") -> Iterator[str]:
    """Yield slots with types where they are written, instructions in order, bodies indented.

    Attributes are written as in Python; constants are named, not printed.
    """
    for word, slots in (("input", program.inputs), ("constant", tuple(program.constants))):
        yield from (f"{indent}{word} %{n}: {described(program.slots[n])}" for n in slots)
    for step, each in enumerate(program.instructions):
        results = ", ".join(f"%{n}: {described(program.slots[n])}" for n in each.outputs if n >= 0)
        operands = ", ".join(f"%{n}" if n >= 0 else "-" for n in each.inputs)
        told = "".join(f" {name}={value!r}" for name, value in each.attributes.items())
        origin = f"  # {each.origin}" if each.origin else ""
        yield f"{indent}{step}: {results} = {each.op}({operands}){told}{origin}"
        for body in each.bodies:
            yield from program_lines(body.program, indent + "    ")
    yield f"{indent}return {', '.join(f'%{n}' for n in program.outputs)}"


def described(slot: Slot) -> str:
    """Return the name, element type and shape of ``slot``; memory space and scale where set."""
    shape = ",".join(map(str, slot.shape))
    text = f"{slot.name!r} {slot.dtype.name.lower()}[{shape}]"
    text += f" in {slot.space}" if slot.space else ""
    if slot.quantization is not None and slot.quantization.axis is None:
        scale, zero = slot.quantization.scale[0], slot.quantization.zero_point[0]
        text += f" scale {scale:g} zero {zero}"
    return text
