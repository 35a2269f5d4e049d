"""Whether the example that reads tensors as numbers and prints classes suits an interface."""

from __future__ import annotations

from smelt.errors import UsageError
from smelt.program.instruction import Program
from smelt.targets.c.contract import ports
from smelt.targets.c.options import Options, refused
from smelt.targets.c.project import classifies


def check_example(options: Options, program: Program) -> None:
    """Raise UsageError E660 if the example of the project cannot read the inputs or compare scores.

    It converts numbers as C does, so elements must be numbers of C: no halves and no packed codes.
    """
    if not classifies(options.project):
        return
    if not program.outputs:
        raise _refused(options, "the model has no output whose scores the example could compare")
    for port in (*ports(program, program.inputs), *ports(program, program.outputs)[:1]):
        if not port.is_plain:
            raise _refused(options, f"{port.note} has elements that C does not compute with")


def _refused(options: Options, why: str) -> UsageError:
    """Return error E660 for a project whose example cannot be written."""
    fix = "use --option project=cmake, whose example prints elements as stored"
    return refused(f"project={options.project}", why, fix)
