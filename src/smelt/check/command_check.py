"""A check for ``reduce`` that runs a command on the model's file and reads its exit status."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Literal

import onnx_ir as ir

from smelt.errors import UsageError

PLACE = "{}"
TIMEOUT = 60.0
"""Seconds after which a command is stopped."""

Status = int | Literal["timeout"]
Wanted = Status | Literal["same", "failure"]


@dataclass
class CommandCheck:
    """A check that is True if ``command`` ends with the ``wanted`` status and prints ``text``.

    The command runs on the file of a model. Its path replaces ``{}`` in the arguments, or comes
    last. No shell is involved. Temporary files of the command are deleted with the model.
    ``wanted`` is an exit status (negative for a signal), ``timeout``, ``failure`` for any status
    but 0, or ``same``: the status on the first model, which must not be 0. ``known`` has the
    answers by digest of the files.
    """

    command: str
    wanted: Wanted = "same"
    timeout: float = TIMEOUT
    text: str = ""
    first: Status | None = None
    known: dict[bytes, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Split the command into words; raises UsageError E636 if that fails."""
        try:
            self.arguments = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(
                "E636",
                f"the check {self.command!r} cannot be split into words",
                why=str(error),
                fix='close all quotes: --check "smelt verify {} other.onnx"',
            ) from error
        if not self.arguments:
            raise UsageError(
                "E636",
                "the check is empty",
                fix='--check "smelt verify {} other.onnx"',
                why="--check is a command to run",
            )

    def __call__(self, model: ir.Model) -> bool:
        """Write ``model`` and run the command on it; the result for an equal file is reused.

        Raises UsageError E622 if the command cannot be started.
        """
        from smelt.frontends.onnx import save

        with tempfile.TemporaryDirectory(prefix="smelt-reduce-") as folder:
            path = save(model, Path(folder) / "model.onnx", keep_bare=True)
            digest = sha256(
                b"".join(f.read_bytes() for f in sorted(path.parent.iterdir()))
            ).digest()
            if digest not in self.known:
                self.known[digest] = self._judge(*self._run(path))
            return self.known[digest]

    def _judge(self, status: Status, output: str) -> bool:
        """True if status and output are as wanted; the first status is recorded for ``same``."""
        if self.first is None:
            self.first = status
        if self.text and self.text not in output:
            return False
        if self.wanted == "failure":
            return status != 0
        if self.wanted == "same":
            return status == self.first and status != 0
        return status == self.wanted

    def _run(self, path: Path) -> tuple[Status, str]:
        """Run the command on ``path``; return its exit status, and its output if ``text``
        is set.
        """
        arguments = [item.replace(PLACE, str(path)) for item in self.arguments]
        if arguments == self.arguments:
            arguments.append(str(path))
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # so that all its processes can be killed
                    env={**os.environ, "TMPDIR": str(path.parent)},  # deleted with the model
                )
            except OSError as error:
                raise UsageError(
                    "E622",
                    f"the check cannot be run: {arguments[0]!r}",
                    why=error.strerror or str(error),
                    fix="if it needs a shell, name the shell: --check \"sh -c '...' _ {}\"",
                ) from error
            status = self._wait_for_end(process)
            output.seek(0)
            return status, (output.read().decode(errors="replace") if self.text else "")

    def _wait_for_end(self, process: subprocess.Popen[bytes]) -> Status:
        """Wait for ``process`` and return its status; kill its process group at the end."""
        try:
            return process.wait(self.timeout)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            # Otherwise processes that the command leaves running would accumulate.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
