"""A hash of the computation of a Program, without the elements of its constants."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from smelt.program.instruction import Instruction, Program


def digest(program: Program) -> str:
    """Return the SHA-256 of the instructions, types and shapes of ``program`` in hexadecimal.

    Names of the model and elements of constants do not count, so equal digests do not imply equal
    programs: a user of digests must tolerate wrong matches.
    """
    hasher = hashlib.sha256()
    for line in _lines(program):
        hasher.update(f"{line}\n".encode())
    return hasher.hexdigest()


def _lines(program: Program) -> Iterator[str]:
    """Yield the text of ``program`` and its bodies that is hashed."""
    yield f"{list(program.inputs)} {list(program.outputs)}"
    for slot in program.slots:
        yield f"{slot.dtype} {tuple(map(str, slot.shape))}"
    yield " ".join(map(str, program.constants))
    for step in program.instructions:
        yield from _step_lines(step)


def _step_lines(step: Instruction) -> Iterator[str]:
    """Yield the text of an instruction, its parts and its bodies that is hashed."""
    attributes = sorted(step.attributes.items())
    yield f"{step.op} {step.inputs} {step.outputs} {attributes} {step.epilogue}"
    for part in step.parts:
        yield from _step_lines(part)
    for body in step.bodies:
        yield from _lines(body.program)
