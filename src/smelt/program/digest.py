"""A hash of the computation of a Program, without the elements of its constants."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from smelt.program.instruction import Instruction, Program


def digest(program: Program) -> str:
    """Return the SHA-256 of instructions, types and shapes in hexadecimal.

    Names of the model and elements of constants do not count, so equal digests do not imply equal
    programs: a user of digests must tolerate wrong matches.
    """
    told = hashlib.sha256()
    for line in _lines(program):
        told.update(f"{line}\n".encode())
    return told.hexdigest()


def _lines(program: Program) -> Iterator[str]:
    yield f"{list(program.inputs)} {list(program.outputs)}"
    for slot in program.slots:
        yield f"{slot.dtype} {tuple(map(str, slot.shape))}"
    yield " ".join(map(str, program.constants))
    for step in program.instructions:
        yield from _of_step(step)


def _of_step(step: Instruction) -> Iterator[str]:
    attributes = sorted(step.attributes.items())
    yield f"{step.op} {step.inputs} {step.outputs} {attributes} {step.epilogue}"
    for part in step.parts:
        yield from _of_step(part)
    for body in step.bodies:
        yield from _lines(body.program)
