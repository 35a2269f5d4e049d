"""``smelt tune --target T -o FILE``: measure the costs by which a target chooses forms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smelt.cli.command import Json, Target, command, note, print_json
from smelt.cli.progress import progress
from smelt.errors import UsageError


@command
def tune(
    output: Annotated[
        str,
        typer.Option("-o", "--output", help="The table; what it holds already is not repeated."),
    ],
    target: Target = "ort",
    threads: Annotated[int, typer.Option(min=1, help="Threads of each kernel.")] = 1,
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="Stop after so long; a later run goes on.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the costs by which a target chooses, and write them as JSON.

    `smelt compile --target ort --option costs=FILE` uses them.
    """
    from smelt.targets.registry import find_target

    chosen = find_target(target)
    if chosen.tune is None:
        raise UsageError("E664", f"target {chosen.name!r} chooses by nothing that is measured")
    path = Path(output)
    if not path.absolute().parent.is_dir():
        raise UsageError("E614", f"cannot write to {output!r}", why="no such folder")
    limit = float("inf") if seconds is None else seconds
    with progress("measuring") as shown:
        document = chosen.tune(path, threads=threads, seconds=limit, say=shown.say)
    if as_json:
        print_json(document)
        return
    print(path)
    if not document.get("complete", True):
        note("not complete: run the command again to go on")
