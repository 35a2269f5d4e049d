"""``smelt reduce MODEL --check CMD``: find a smaller model on which a command still fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli.arguments import one_document, read_model, write_model
from smelt.cli.command import Json, Model, Output, command, note, print_json
from smelt.cli.progress import progress
from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.check.command_check import Wanted


@command
def reduce(
    model: Model,
    check: Annotated[
        str,
        typer.Option(
            metavar="CMD",
            help="Run on each candidate, whose path is put in for {} or comes last.",
        ),
    ],
    output: Output,
    status: Annotated[
        str,
        typer.Option(
            "--check-status",
            metavar="N|same|failure|timeout",
            help="The exit status that means: still there. same: that of MODEL, if not 0.",
        ),
    ] = "same",
    text: Annotated[
        str, typer.Option("--check-text", help="What CMD has to print as well, to be still there.")
    ] = "",
    timeout: Annotated[
        float, typer.Option(min=0.01, help="Seconds after which CMD is stopped.")
    ] = 60.0,
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs of CMD at most; the best so far is written.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a model smaller as long as CMD still fails on it as it does on MODEL.

    Nodes, outputs, branches, sizes and weights go; every candidate is a valid model. A crash and
    a timeout are exit statuses too: --check "smelt verify {} other.onnx" looks for a mismatch.
    """
    from smelt.check.command_check import CommandCheck
    from smelt.check.reduce import reduce as shrink

    one_document(as_json, output)
    still_there = CommandCheck(check, _wanted(status), timeout, text)
    read = read_model(model, as_is=True)
    with progress("running the check on the model") as shown:
        try:
            reduction = shrink(read, still_there, runs=runs, say=shown.say)
        except UsageError as error:
            if error.code == "E621":
                error.why = (
                    f"CMD ended with {still_there.first}, and {_words(status)} was asked for"
                )
            raise
        write_model(reduction.model, output, keep_bare=True)
    if as_json:
        facts = {"status": still_there.first, "output": output, **reduction.to_json()}
        print_json({"schema": "smelt.reduce/1", **facts})
    else:
        note(f"{output}: {reduction}")
        note(f"CMD ended with {still_there.first} on the model, and does on this one")


def _wanted(status: str) -> Wanted:
    """Return ``--check-status`` as a number or one of its words; raises UsageError E636."""
    if status in ("same", "failure", "timeout"):
        return status  # type: ignore[return-value]
    try:
        return int(status)
    except ValueError as error:
        raise UsageError(
            "E636", f"--check-status {status!r} is no exit status", fix="--check-status 1"
        ) from error


def _words(status: str) -> str:
    return "any other than 0" if status in ("same", "failure") else status
