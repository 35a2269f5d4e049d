"""A short name for what a Program computes, the elements of its constants aside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from smelt.program.instruction import Instruction, Program


def digest(program: Program) -> str:
    """The SHA-256 of its instructions, types and shapes, as hexadecimal digits.

    Names of the model and elements of constants do not count, so equal names promise no equal
    programs: who goes by one has to see that a wrong guess costs time only.
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
    yield f"{step.op} {step.inputs} {step.outputs} {attributes} {step.finish}"
    for part in step.parts:
        yield from _of_step(part)
    for body in step.bodies:
        yield from _lines(body.program)
