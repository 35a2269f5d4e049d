"""``smelt reduce MODEL --check CMD``: find a smaller model on which a command still fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import one_document, read_model, write_model
from smelt.cli.command import INTERRUPTED, Json, Model, Output, command, note, print_json
from smelt.cli.progress import progress
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.check.command_check import Wanted


CheckCommand = Annotated[
    str,
    typer.Option(
        metavar="CMD",
        help="The command to run on each smaller model. {} stands for the path of the model;"
        " without"
        " {}, the path is the last argument.",
    ),
]
CheckStatus = Annotated[
    str,
    typer.Option(
        "--check-status",
        metavar="N|same|failure|timeout",
        help="The exit status of CMD that means that the failure is still there. same: the"
        " status"
        " of CMD on MODEL.",
    ),
]
CheckText = Annotated[
    str,
    typer.Option(
        "--check-text", metavar="TEXT", help="A text that CMD must also print while it fails."
    ),
]
Timeout = Annotated[float, typer.Option(min=0.01, metavar="SECONDS", help="End CMD after SECONDS.")]
Runs = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Run CMD at most N times and write the smallest model so far."
    ),
]


@command
def reduce(
    model: Model,
    check: CheckCommand,
    output: Output,
    status: CheckStatus = "same",
    text: CheckText = "",
    timeout: Timeout = 60.0,
    runs: Runs = None,
    as_json: Json = False,
) -> None:
    """Make a model as small as possible while a command fails on it.

    Removes nodes, outputs, branches and weights, and makes dims smaller, as long as CMD fails on
    the smaller model as it fails on MODEL. A crash or a timeout of CMD also counts as failure.

    Example: smelt reduce model.onnx --check "python crash.py {}" -o small.onnx
    """
    from smelt.check.command_check import CommandCheck
    from smelt.check.reduce import reduce as shrink

    one_document(as_json, output)
    still_there = CommandCheck(check, _parsed_status(status), timeout, text)
    read = read_model(model, as_is=True)
    with progress("running the check on the model") as shown:
        try:
            reduction = shrink(read, still_there, runs=runs, say=shown.say)
        except UsageError as error:
            if error.code == "E621":
                wanted = _status_in_words(status)
                error.why = f"CMD ended with {still_there.first}, and {wanted} was asked for"
            raise
        write_model(reduction.model, output, keep_bare=True)
    if as_json:
        facts = {"status": still_there.first, "output": output, **reduction.to_json()}
        print_json({"schema": "smelt.reduce/1", **facts})
    else:
        note(f"{output}: {reduction}")
        note(f"CMD ends with {still_there.first} on the model and on the reduced one")
    if reduction.interrupted:
        raise typer.Exit(INTERRUPTED)


def _parsed_status(status: str) -> Wanted:
    """Return ``--check-status`` as a number or one of its words; raises UsageError E636."""
    if status in ("same", "failure", "timeout"):
        return status  # type: ignore[return-value]
    try:
        return int(status)
    except ValueError as error:
        raise UsageError(
            "E636",
            f"--check-status {status!r} is not an exit status",
            fix="--check-status 1",
            why="it is a number, or one of same, failure and timeout",
        ) from error


def _status_in_words(status: str) -> str:
    """Return ``--check-status`` in words."""
    return "any other than 0" if status in ("same", "failure") else status
