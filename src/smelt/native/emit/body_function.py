"""The C function of a control-flow body, and the error with which it ends a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smelt.errors import Unsupported
from smelt.native.emit.run_time import returned_sizes
from smelt.program.instruction import Instruction
from smelt.runtime.c_library import ERROR_SIZE

if TYPE_CHECKING:
    from smelt.native.emit.unit import Unit


def error_of(instruction: Instruction, body: Unit) -> int:
    """Return the error code of a run in which the body function fails; 0 if it cannot fail.

    Raises Unsupported E201 if the body can fail with different codes, or if it needs a check of a
    value before the run; only the function of the whole model makes such checks.
    """
    # The instruction itself ends a run with ERROR_SIZE if it computes sizes or if its bodies do.
    checks_sizes = instruction.attributes.get("finds") or any(
        each.program.loop_sizes or returned_sizes(each.program) for each in instruction.bodies
    )
    errors = body.fails | ({ERROR_SIZE} if checks_sizes else set())
    if body.checks or len(errors) > 1:
        raise Unsupported(
            "E201",
            f"a body of operator {instruction.op} cannot be a C function",
            at=f"node {instruction.origin!r}",
            why="its body reads axes at run time, and smelt can check axes only outside of bodies"
            if body.checks
            else "its body may fail in more than one way, and a body returns one status",
            fix="fold constants first, make axes constants in the model, or use the target 'onnx'",
        )
    return next(iter(body.fails), 0)


def body_text(body: Unit) -> str:
    """Return parameters and body of the C function, which takes tensor pointers and memory.

    ```
    (const void *const *inputs, void *const *outputs, unsigned char *memory, ptrdiff_t *...)
    {
        ptrdiff_t dim0 = -1;
        (void)inputs;
        NonZero_3((const float *)inputs[0], ..., &dim0);
        *returned_dim0 = dim0;
    }
    ```
    """
    computed_sizes = [str(each.size) for each in body.program.data_dependent_sizes]
    extra_parameters = {
        name: text for name, text in body.extra_parameters.items() if name not in computed_sizes
    }
    result_sizes = returned_sizes(body.program)
    more = "".join(f", {declared}" for declared in extra_parameters.values())
    more += "".join(f", ptrdiff_t *returned_{size}" for size in result_sizes)
    head = f"(const void *const *inputs, void *const *outputs, unsigned char *memory{more})"
    lines = [f"ptrdiff_t {size} = -1;" for size in computed_sizes]
    lines += [f"(void){name};" for name in ("inputs", "outputs", "memory", *body.extra_parameters)]
    lines += body.calls + [f"*returned_{size} = {size};" for size in result_sizes]
    lines += ["return 0;"] if body.fails else []
    return "\n    ".join([f"{head}\n{{", *lines]) + "\n}\n"
