"""``smelt tune --target T -o FILE``: measure the costs by which a target chooses forms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smelt.cli.command import Json, Target, command, note, partial_results, print_json
from smelt.cli.progress import progress
from smelt.errors import UsageError

CostsFile = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="The JSON file to write. Kernels that an existing file has are not timed again.",
    ),
]
Threads = Annotated[int, typer.Option(min=1, metavar="N", help="The threads of each kernel.")]
Seconds = Annotated[
    float | None,
    typer.Option(
        min=0.0, metavar="SECONDS", help="Stop after SECONDS; run the command again to go on."
    ),
]


@command
def tune(
    output: CostsFile,
    target: Target = "ort",
    threads: Threads = 1,
    seconds: Seconds = None,
    as_json: Json = False,
) -> None:
    """Time the kernels of a target on this machine.

    Pass the file to `smelt compile --target ort --option costs=FILE`: the target then chooses
    among equivalent operators by these times instead of its built-in estimates.

    Example: smelt tune --target ort -o costs.json --seconds 60
    """
    from smelt.targets.registry import find_target

    chosen = find_target(target)
    if chosen.tune is None:
        raise UsageError(
            "E664",
            f"target {chosen.name!r} has no costs to measure",
            why="it does not choose among equivalent operators by time",
            fix="smelt tune --target ort -o costs.json",
        )
    path = Path(output)
    if not path.absolute().parent.is_dir():
        raise UsageError(
            "E614",
            f"cannot write to {output!r}",
            why="the folder does not exist",
            fix="create the folder first, or choose another path",
        )
    partial_results.set(f"{output} has the times so far; the same command goes on")
    limit = float("inf") if seconds is None else seconds
    with progress("measuring") as shown:
        document = chosen.tune(path, threads=threads, seconds=limit, say=shown.say)
    if as_json:
        print_json(document)
        return
    print(path)
    if not document.get("complete", True):
        note("not complete: run the command again to go on")
