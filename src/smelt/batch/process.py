"""Process one model in a process of its own, which may crash, hang or be killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from smelt.batch.content import key_of
from smelt.batch.outcome import Outcome, facts
from smelt.batch.plan import Batch, Job
from smelt.errors import InternalError, ResourceLimit, SmeltError, UsageError

COMMAND = (sys.executable, "-P", "-m", "smelt")
"""The command line; -P keeps files of the current folder from shadowing packages."""

ALWAYS = ("--json", "--no-config")
"""Options of every command. Its settings are among the options of the batch, so it reads none."""

TICK = 0.1
"""Seconds between two checks whether to stop."""

GRACE = 3.0
"""Seconds that a process gets to remove its temporary files."""


class Interrupted(Exception):
    """The batch was stopped; the outcome of the current model is unknown."""


def run_job(
    job: Job, batch: Batch, earlier: Outcome | None, stopping: Callable[[], bool] = lambda: False
) -> Outcome:
    """Return the outcome of ``job``, or ``earlier`` if nothing that it depends on has changed.

    Raises Interrupted if ``stopping`` returns True, and UsageError for arguments that the command
    does not have.
    """
    begin = time.monotonic()
    output_path = str(batch.folder / job.output)
    try:
        models = [job.model, output_path] if batch.action == "verify" else [job.model]
        key = key_of(models, batch.action, batch.options)
        if earlier is not None and earlier.key == key and earlier.holds(batch.folder):
            return earlier
        Path(output_path).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return failed(job, "", _unusable_path(error), time.monotonic() - begin)
    output = [output_path] if batch.action == "verify" else ["-o", output_path]
    arguments = [batch.action, job.model, *output, *batch.options, *ALWAYS]
    try:
        status, out, err = call(arguments, batch.timeout, stopping)
    except SmeltError as error:
        return failed(job, key, error, time.monotonic() - begin)
    fields = _facts(out, job, batch)
    if fields is None or (status and "error" not in fields):
        failure = _error_without_document(job, status, err)
        return failed(job, key, failure, time.monotonic() - begin)
    if status and fields["error"]["code"] == "E643":
        raise _wrong_options(batch.action, fields["error"]["what"])
    return Outcome(job.name, job.output, key, status, time.monotonic() - begin, **fields)


def _unusable_path(error: OSError) -> UsageError:
    """Return UsageError E639 for a file that cannot be read or a folder that cannot be created."""
    return UsageError(
        "E639",
        f"cannot use {error.filename!r}",
        why=error.strerror or str(error),
        fix="check that the path exists and that you may read it",
    )


def _wrong_options(action: str, what: str) -> UsageError:
    """Return UsageError E643 for options that the command ``action`` does not have."""
    return UsageError(
        "E643",
        what,
        fix=f"`smelt {action} --help`",
        why=f"the options after -- go to `smelt {action}`",
    )


def call(
    arguments: Sequence[str], timeout: float | None, stopping: Callable[[], bool]
) -> tuple[int, str, str]:
    """Run ``smelt`` with ``arguments``; return its exit status, standard output and standard error.

    Raises ResourceLimit E511 at the time limit, Interrupted if ``stopping`` returns True.
    """
    limit = time.monotonic() + timeout if timeout is not None else None
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        while True:
            try:
                out, err = process.communicate(timeout=TICK)
            except subprocess.TimeoutExpired:
                if stopping():
                    raise Interrupted from None
                if limit is not None and time.monotonic() > limit:
                    what = f"the model took more than {timeout:g} seconds"
                    raise ResourceLimit(
                        "E511",
                        what,
                        fix="a longer --timeout",
                        why="the batch ends a model at this time",
                    ) from None
            else:
                return process.returncode, out.decode(), err.decode(errors="replace")
    finally:
        if process.returncode is None:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the process group; kill it if it does not end in time."""
    for number in (signal.SIGINT, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=GRACE)
            break


def _facts(out: str, job: Job, batch: Batch) -> dict[str, Any] | None:
    """Return fields of an Outcome, read from the standard output ``out`` of a command.

    None if it is no valid document, or if files that it names are missing.
    """
    try:
        return facts(batch.action, json.loads(out), job.model, batch.folder)
    except (ValueError, KeyError, TypeError, OSError):
        return None


def _error_without_document(job: Job, status: int, err: str) -> SmeltError:
    """Return the error of a process that printed no JSON document: E520 after a signal, else E901.

    ``err`` is its standard error, of which the last line is quoted.
    """
    words = [line.strip()[:200] for line in err.splitlines() if line.strip()]
    last_output = f"its last output: {words[-1]}" if words else "it printed no error"
    if status < 0:
        name = signal.Signals(-status).name
        cause, fix = "a library crashed, or another process sent the signal", "report the model"
        if name == "SIGKILL":
            cause, fix = (
                "the system may send it if memory runs out",
                "fewer --jobs, if memory ran out",
            )
        what = f"{name} ended the process that ran {job.model!r}"
        return ResourceLimit("E520", what, why=f"{cause}; {last_output}", fix=fix)
    return InternalError(
        "E901",
        f"the command for {job.model!r} ended with status {status} and printed no JSON document",
        why=last_output,
        fix="run the command on this model alone, and report what it prints",
    )


def failed(job: Job, key: str, error: SmeltError, seconds: float) -> Outcome:
    """Return the outcome of a model whose command did not finish."""
    return Outcome(job.name, job.output, key, int(error.status), seconds, error.to_json())
