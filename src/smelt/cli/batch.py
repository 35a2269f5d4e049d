"""``smelt batch GLOB... --do COMMAND -o FOLDER``: run one command over many models."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from smelt.cli.arguments import STANDARD
from smelt.cli.command import Json, command, note, print_json
from smelt.cli.layout import printable, table
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.errors import ExitStatus

if TYPE_CHECKING:
    from smelt.batch import Outcome, Summary
    from smelt.batch.run import RunJobs

SIGNALLED = 128
"""A process that ends by signal n has the exit status 128 + n, as in a shell."""

ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that stop a batch; its finished results are kept."""


Models = Annotated[
    list[str],
    typer.Argument(metavar="MODELS", help="Models, folders, or patterns such as 'm/**/*.onnx'."),
]
Action = Annotated[
    Literal["optimize", "verify", "compile"],
    typer.Option(
        "--do",
        help="The command to run. verify compares each model with the file of the same name"
        " in FOLDER.",
    ),
]
Folder = Annotated[
    str, typer.Option("-o", "--output", metavar="FOLDER", help="The folder for the results.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="The number of models to process at once. The default is 1, on Ray the number of"
        " CPUs.",
    ),
]
Timeout = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Give up on a model after SECONDS.")
]
Retry = Annotated[bool, typer.Option("--retry", help="Also process the models that failed before.")]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="Work on this Ray cluster; local starts one on this machine."
    ),
]


@command
def batch(
    context: typer.Context,
    models: Models,
    action: Action,
    output: Folder,
    jobs: Jobs = None,
    timeout: Timeout = None,
    retry: Retry = False,
    ray: RayAddress = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Run a command over many models, each in its own process.

    Options after -- go to the command. A second call processes only the models that have no
    result yet. The exit status is 1 if a model failed.

    Example: smelt batch 'models/*.onnx' --do optimize -o out -- --verify final
    """
    from smelt.batch import plan, run

    planned = plan(models, action, output, options=_options(context, action), timeout=timeout)
    total = len(planned.jobs)
    title = f"{action} of {total} models"
    with (
        reporting(report, title, STANDARD, reads=[job.model for job in planned.jobs]) as page,
        progress(title) as shown,
    ):
        tell = _teller(action, total, shown.say)
        with ended_by_signals() as signalled:
            summary = run(planned, run_jobs=_runner_of_jobs(ray, jobs), retry=retry, tell=tell)
        page.report.batch = summary.to_json()
    if as_json:
        print_json(summary.to_json())
    else:
        _show(summary)
    if summary.stopped:
        raise typer.Exit(SIGNALLED + signalled[-1])
    if not summary.ok:
        raise typer.Exit(int(ExitStatus.MISMATCH))


def _teller(action: str, total: int, say: Callable[[str], None]) -> Callable[[Outcome], None]:
    """Return the function to call with each outcome.

    It counts the outcomes and passes a progress text to ``say``; ``total`` is the number of models.
    """
    finished = failed = 0

    def tell(outcome: Outcome) -> None:
        """Show how many models are finished, and the last one."""
        nonlocal finished, failed
        finished += 1
        failed += not outcome.done
        say(f"{action}: {finished} of {total}, {failed} failed; last {printable(outcome.name)}")

    return tell


def _runner_of_jobs(address: str | None, jobs: int | None) -> RunJobs:
    """Return the function that starts the workers: local processes, or tasks of a Ray cluster."""
    if address is None:
        from smelt.batch.local import run_jobs

        return partial(run_jobs, jobs=jobs or 1)
    from smelt.ray.batches import run_jobs as run_jobs_on_ray

    return partial(run_jobs_on_ray, address=address, jobs=jobs)


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """Treat SIGINT, SIGTERM and SIGHUP as Ctrl-C inside the block.

    The yielded list ends with the number of the last signal.
    """
    signals = [int(signal.SIGINT)]

    def interrupt(number: int, frame: object) -> None:
        """Note the signal and raise KeyboardInterrupt."""
        signals.append(number)
        raise KeyboardInterrupt

    old_handlers = {}
    if threading.current_thread() is threading.main_thread():
        old_handlers = {number: signal.signal(number, interrupt) for number in ENDS}
    try:
        yield signals
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


def _options(context: typer.Context, action: str) -> list[str]:
    """Return the arguments of each model's command: options of smelt, settings, options after --.

    Settings files and variables are read here, and not by each command. So all machines use the
    same settings, and a change of a setting makes earlier results invalid.
    """
    from smelt.cli.known_commands import ANYWHERE
    from smelt.cli.own_options import known_options
    from smelt.cli.settings.files import find_files
    from smelt.cli.settings.resolve import as_arguments, files_wanted, resolve

    arguments: list[str] = context.obj
    root_params = context.find_root().params
    flags = [flag for flag in ANYWHERE if root_params.get(flag[2:].replace("-", "_"))]
    files = find_files() if files_wanted(flags) else ()
    settings = resolve(known_options(), files, os.environ)
    flags = [flag for flag in flags if flag != "--no-config"]
    return [*flags, *as_arguments(settings, action, arguments), *arguments]


def _show(summary: Summary) -> None:
    """Print the table of all outcomes, and on standard error the counts and how to continue."""
    header = ("model", "nodes", "bytes", "seconds", "evidence", "result")
    print(table([_row(outcome) for outcome in summary.listed()], header))
    counts = summary.to_json()["counts"]
    note(
        f"{len(summary.batch.jobs)} models: {counts['done']} done, {counts['failed']} failed; "
        f"{counts['cached']} of these in an earlier call"
    )
    if summary.stopped:
        note("stopped; run the same command to continue")
    elif counts["failed"]:
        note("--retry runs the failed models again")


def _row(outcome: Outcome) -> tuple[Any, ...]:
    """Return one row of the table: model, nodes, bytes, seconds, verification, result."""
    result = "done"
    if outcome.error is not None:
        result = printable(f"{outcome.code} {outcome.error['what']}")
    return (
        printable(outcome.name),
        _change(outcome.nodes),
        _change(outcome.bytes),
        f"{outcome.seconds:.1f}",
        _evidence(outcome),
        result,
    )


def _change(counts: tuple[int, int] | None) -> str:
    """Return ``before -> after``, or an empty text if there are no counts."""
    return f"{counts[0]:,} -> {counts[1]:,}" if counts else ""


def _evidence(outcome: Outcome) -> str:
    """Return the largest error of the verification and the number of sizes; empty without one."""
    record = outcome.evidence
    if not record:
        return ""
    worst = record["worst"]
    error = f"{float(worst['ulp']):.2g} ulp" if worst["error"] else "equal bits"
    count = len(record["sizes"])
    return f"{error} at {count} size{'' if count == 1 else 's'}"
