"""The record of a batch: one line of JSON for each finished model."""

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
    """The record file in the folder of the results; the last line about a result counts."""

    def __init__(self, stream: BinaryIO, action: str) -> None:
        """Read the earlier outcomes from ``stream``, and end a last line that a crash cut off."""
        self._stream = stream
        self._action = action
        self._outcomes = dict(_entries(stream.read().splitlines()))
        # A crash may leave a line without an end; start a new line after it.
        self._stream.write(b"\n") if self._is_cut() else None

    def last_outcome(self, output: str) -> Outcome | None:
        """Return the last outcome of the model with the result ``output``, or None."""
        return self._outcomes.get((self._action, output))

    def add(self, outcome: Outcome) -> None:
        """Append ``outcome`` and flush it to disk."""
        entry = {"schema": SCHEMA, "action": self._action, **outcome.to_json()}
        self._stream.write(json.dumps(entry).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def _is_cut(self) -> bool:
        """True if the last line of the file has no end."""
        size = self._stream.seek(0, os.SEEK_END)
        if not size:
            return False
        self._stream.seek(size - 1)
        return self._stream.read(1) != b"\n"


@contextmanager
def opened(folder: Path, action: str) -> Iterator[Record]:
    """Yield the record in ``folder``, locked; raises UsageError E693 if another batch has the
    lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NAME).open("a+b") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                "E693",
                f"another batch is running in {os.fspath(folder)!r}",
                fix="wait for it, or choose another folder",
                why="two batches would overwrite each other's results",
            ) from error
        stream.seek(0)
        yield Record(stream, action)


def _entries(lines: list[bytes]) -> Iterator[tuple[tuple[str, str], Outcome]]:
    """Yield the outcomes of all valid lines; others are skipped."""
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
