"""The function of C that a body of control flow becomes, and how it ends a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.errors import Unsupported
from smelt.native.run_time import told_sizes
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
    finds = instruction.attributes.get("finds") or any(
        each.program.carried or told_sizes(each.program) for each in instruction.bodies
    )
    errors = body.fails | ({ERROR_SIZE} if finds else set())
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
    found = [str(each.size) for each in body.program.found]
    handed_on = {name: text for name, text in body.handed_on.items() if name not in found}
    told = told_sizes(body.program)
    more = "".join(f", {declared}" for declared in handed_on.values())
    more += "".join(f", ptrdiff_t *told_{size}" for size in told)
    head = f"(const void *const *inputs, void *const *outputs, unsigned char *memory{more})"
    lines = [f"ptrdiff_t {size} = -1;" for size in found]
    lines += [f"(void){name};" for name in ("inputs", "outputs", "memory", *body.handed_on)]
    lines += body.calls + [f"*told_{size} = {size};" for size in told]
    lines += ["return 0;"] if body.fails else []
    return "\n    ".join([f"{head}\n{{", *lines]) + "\n}\n"
