"""The function of C that a body of control flow becomes, and how it ends a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.errors import Unsupported
from smelt.program.instruction import Instruction
from smelt.runtime.c_library import ERROR_SIZE

if TYPE_CHECKING:
    from smelt.native.unit import Unit


def error_of(instruction: Instruction, body: Unit) -> int:
    """The error of a run in which the function of ``body`` returns other than 0; 0 if it returns
    nothing.

    Raises Unsupported E201 where there may be more than one, or where only the model itself can
    check before a run what the body reads.
    """
    errors = body.fails | ({ERROR_SIZE} if instruction.attributes.get("finds") else set())
    if body.checks or len(errors) > 1:
        raise Unsupported(
            "E201",
            f"operator {instruction.op} has no kernel in C",
            at=f"node {instruction.origin!r}",
            why="its body reads axes as it runs, which only the model itself checks"
            if body.checks
            else "its body may end a run for more than one reason",
            fix="fold constants first, or fix the value in the model",
        )
    return next(iter(body.fails), 0)


def body_text(body: Unit) -> str:
    """Parameters and lines of the function, which takes pointers to tensors, and memory."""
    more = "".join(f", {declared}" for declared in body.handed_on.values())
    head = f"(const void *const *inputs, void *const *outputs, unsigned char *memory{more})"
    lines = [f"(void){name};" for name in ("inputs", "outputs", "memory", *body.handed_on)]
    lines += body.calls + (["return 0;"] if body.fails else [])
    return "\n    ".join([f"{head}\n{{", *lines]) + "\n}\n"
