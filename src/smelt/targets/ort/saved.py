"""Open a folder that the target wrote: a model, and advice for its session."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from smelt.errors import UsageError
from smelt.runtime.interface import interface_of
from smelt.runtime.runner import as_model
from smelt.runtime.session import SessionAdvice
from smelt.targets.base import Saved
from smelt.targets.ort.artifact import ADVICE, run_model


def open_folder(folder: Path) -> Saved | None:
    """The model in ``folder``; None unless there is one ``.onnx`` file and ``session.json``.

    Raises UsageError E663 if the advice is none.
    """
    found = sorted(folder.glob("*.onnx"))
    if len(found) != 1 or not (folder / ADVICE).is_file():
        return None
    read_advice(folder)
    model = as_model(found[0])
    return Saved("ort", interface_of(model), partial(run_model, model), model)


def read_advice(folder: str | Path) -> SessionAdvice:
    """How to open a session of the model in ``folder``; raises UsageError E663 for other text."""
    path = Path(folder) / ADVICE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError("E663", f"{str(path)!r} is no JSON", why=str(error)) from error
    if not isinstance(document, dict):
        raise UsageError("E663", f"{str(path)!r} holds no options", why="it is no object")
    return SessionAdvice.from_json(document)
