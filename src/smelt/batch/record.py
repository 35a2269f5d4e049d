"""The record of a batch: one line of JSON for each model that came to an end."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from smelt.batch.outcome import Outcome
from smelt.errors import UsageError

SCHEMA = "smelt.batch.record/1"
NAME = "smelt-batch.jsonl"


class Record:
    """The lines in the folder of the results; the last one about a result counts."""

    def __init__(self, stream: BinaryIO, action: str) -> None:
        self._stream = stream
        self._action = action
        self._known = dict(_entries(stream.read().splitlines()))
        # A line that a crash cut short has no end; what follows begins on a line of its own.
        self._stream.write(b"\n") if self._is_cut() else None

    def known(self, output: str) -> Outcome | None:
        """What became of the model with the result ``output`` last time."""
        return self._known.get((self._action, output))

    def add(self, outcome: Outcome) -> None:
        """Append ``outcome``; it is on disk when this returns."""
        entry = {"schema": SCHEMA, "action": self._action, **outcome.to_json()}
        self._stream.write(json.dumps(entry).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _is_cut(self) -> bool:
        size = self._stream.seek(0, os.SEEK_END)
        if not size:
            return False
        self._stream.seek(size - 1)
        return self._stream.read(1) != b"\n"


@contextmanager
def opened(folder: Path, action: str) -> Iterator[Record]:
    """The record in ``folder``, for one batch at a time; raises UsageError E693 if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NAME).open("a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                "E693",
                f"another batch is at work in {os.fspath(folder)!r}",
                fix="wait for it, or choose another folder",
            ) from error
        stream.seek(0)
        yield Record(stream, action)


def _entries(lines: list[bytes]) -> Iterator[tuple[tuple[str, str], Outcome]]:
    """Lines that are whole and of this form; others say nothing."""
    for line in lines:
        try:
            entry: dict[str, Any] = json.loads(line)
            if entry.pop("schema") != SCHEMA:
                continue
            action = entry.pop("action")
            outcome = Outcome(**{**entry, "cached": True})
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        yield (action, outcome.output), outcome
