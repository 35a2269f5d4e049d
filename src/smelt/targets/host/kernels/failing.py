"""The kernel of FAIL, the only instruction of a branch that cannot be computed at these sizes."""

from __future__ import annotations

from smelt.errors import UsageError
from smelt.program.instruction import FAIL
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel(FAIL)
def fail(call: Call) -> Step:
    """Return a step that raises UsageError E670 when it runs."""
    why = call.text("why")

    def run(out: Array) -> None:
        """Raise UsageError E670: the run needs a result that cannot be computed."""
        raise UsageError(
            "E670",
            "a branch or loop that this run takes cannot be computed",
            why=f"this requirement does not hold: {why}",
            fix="give inputs for which it holds, or correct the model",
        )

    return Step(run)
