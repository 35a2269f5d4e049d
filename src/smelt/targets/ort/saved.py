"""Open a folder that the target wrote: a model and the options for its session."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from smelt.errors import UsageError
from smelt.runtime.interface import interface_of
from smelt.runtime.kept_session import open_kept
from smelt.runtime.runner import as_model
from smelt.runtime.session import Session, SessionAdvice, open_session, open_with_library
from smelt.runtime.session_runner import run_session
from smelt.targets.ort.artifact import ADVICE, run_model
from smelt.targets.runner import Runner
from smelt.targets.saved_folder import Saved


def open_folder(folder: Path) -> Saved | None:
    """Return the model in ``folder``; None unless it has one ``.onnx`` file and ``session.json``.

    Raises UsageError E663 if ``session.json`` is invalid.
    """
    paths = folder.glob("*.onnx")
    models = sorted(path for path in paths if not path.name.endswith(NATIVE))
    if len(models) != 1 or not (folder / ADVICE).is_file():
        return None
    advice, model = read_advice(folder), as_model(models[0])
    load: Callable[[], Runner] = partial(run_model, model)
    if _library(models[0]).is_file():
        load = partial(run_session, model, partial(_open_native, models[0], advice, threads=1))
    return SavedForOrt("ort", interface_of(model), load, model, path=models[0], advice=advice)


NATIVE, LIBRARY = ".native.onnx", ".native.so"
"""Ends of the names of a model with native regions, and of the library that computes them."""


@dataclass(frozen=True)
class SavedForOrt(Saved):
    """A saved model: its file, and the ``advice`` for its sessions."""

    path: Path = Path()
    advice: SessionAdvice = field(default_factory=SessionAdvice)

    def session(self, *, kept: str | Path | None = None, **changes: Any) -> Session:
        """Open a session, as the artifact's ``session`` does.

        ``kept`` is a folder for the model as the runtime optimized it, from which later sessions on
        this machine open faster. Raises UsageError E614 if it cannot be written.
        """
        advice = SessionAdvice.from_json({**self.advice.to_json(), **changes})
        if _library(self.path).is_file():
            return open_with_library(self.path, LIBRARY, advice)
        if kept is not None:
            return open_kept(self.path, advice, Path(kept))
        return open_session(self.path, advice)


def _library(model: Path) -> Path:
    """Return the path of the library of native regions that a saved model may have."""
    return model.with_name(f"{model.stem}{LIBRARY}")


def _open_native(model: Path, advice: SessionAdvice, threads: int) -> Session:
    """Open the saved model with its native regions, on ``threads`` threads."""
    return open_with_library(model, LIBRARY, replace(advice, threads=threads))


def read_advice(folder: str | Path) -> SessionAdvice:
    """Return the session options in ``folder``; raises UsageError E663 for other text."""
    path = Path(folder) / ADVICE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(
            "E663",
            f"{str(path)!r} is not JSON",
            why=str(error),
            fix="compile the model again, or restore the file",
        ) from error
    if not isinstance(document, dict):
        raise UsageError(
            "E663",
            f"{str(path)!r} does not hold session options",
            why="it is not a JSON object",
            fix="compile the model again, or restore the file",
        )
    try:
        return SessionAdvice.from_json(document)
    except UsageError as error:
        error.at = (str(path),)
        raise
