"""The file of ``--resume``: errors that a search has measured, so that a later one starts there.

The first line is a JSON object with a digest of the search: model, data, metric and settings. Each
further line is one error: ``{"key": ..., "error": ...}``. The limit is no part of the digest: an
error holds for any limit. A line that was cut off, as by a power failure, is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.fingerprint import fingerprint
from smelt.ir.names import name_values
from smelt.precision.data import Data
from smelt.precision.error import Metric
from smelt.precision.int8.settings import Settings
from smelt.runtime.interface import Value

SCHEMA = "smelt.search/1"


@dataclass
class Record:
    """The errors measured so far; with a ``path``, each new one is appended to this file."""

    path: Path | None = None
    errors: dict[str, float] = field(default_factory=dict)

    def get(self, key: str) -> float | None:
        """Return the error that was measured under ``key``, None if there is none."""
        return self.errors.get(key)

    def put(self, key: str, error: float) -> None:
        """Store an error."""
        self.errors[key] = error
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "error": error}) + "\n")


def open_record(path: str | os.PathLike[str] | None, digest: str) -> Record:
    """Return the record in the file ``path``, which is created if it does not exist.

    Raises UsageError E629 for a file of another search or of another kind, and for a path at which
    no file can be created.
    """
    if path is None:
        return Record()
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    except (OSError, UnicodeDecodeError):
        lines = ["unreadable"]
    header = {"schema": SCHEMA, "search": digest}
    if not lines:
        _begin(file, header)
        return Record(file)
    if _parsed(lines[0]) != header:
        raise UsageError(
            "E629",
            f"{str(path)!r} holds no errors of this search",
            why="the model, the data, the metric or an option other than --within has changed"
            if "smelt.search" in lines[0]
            else "it is another kind of file",
            fix="name a new file",
        )
    rows = [row for row in map(_parsed, lines[1:]) if isinstance(row, dict)]
    errors = {str(row["key"]): float(row["error"]) for row in rows if {"key", "error"} <= set(row)}
    if lines[1:] and _parsed(lines[-1]) is None:
        with file.open("a", encoding="utf-8") as stream:
            stream.write("\n")
    return Record(file, errors)


def _begin(file: Path, header: Mapping[str, str]) -> None:
    """Write the first line; raises UsageError E629 if the file cannot be created."""
    try:
        file.write_text(json.dumps(header) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            "E629",
            f"cannot create {str(file)!r}",
            why=str(error),
            fix="name a file in a folder that exists and is writable",
        ) from None


def _parsed(line: str) -> object:
    """Return the JSON value in ``line``, None for other text."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def digest_of_search(
    model: ir.Model, data: Data, metric: Metric, labels: np.ndarray | None, settings: Settings
) -> str:
    """Return a digest of all that the errors of a search depend on.

    A metric that is a Python function counts by its name only.
    """
    name_values(model)
    digest = hashlib.sha256(fingerprint(model.graph))
    for node in model.graph:
        digest.update(repr([value.name for value in node.outputs]).encode())
    for part in (data.calibration, data.selection):
        for sample in part:
            for value in sample:
                digest.update(_bytes_of(value))
    choices = (
        metric.name,
        None if labels is None else labels.tolist(),
        settings.activations,
        settings.format,
        settings.links,
        settings.gains.kind == "cycles",  # with it, all static products round their results
        sorted(settings.keep),
        settings.ranges,
        settings.method,
    )
    digest.update(repr(choices).encode())
    return digest.hexdigest()


def _bytes_of(value: Value) -> bytes:
    """Return the type, the shape and the elements of an input."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    return repr(value.tolist() if isinstance(value, np.ndarray) else value).encode()
