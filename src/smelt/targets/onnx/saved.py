"""Open a folder that holds one ONNX model."""

from __future__ import annotations

from pathlib import Path

from smelt.runtime.interface import interface_of
from smelt.runtime.runner import as_model, open_runner
from smelt.targets.saved_folder import Saved


def open_folder(folder: Path) -> Saved | None:
    """Return the model in ``folder``; None unless there is exactly one ``.onnx`` file."""
    models = sorted(folder.glob("*.onnx"))
    if len(models) != 1:
        return None
    model = as_model(models[0])
    return Saved("onnx", interface_of(model), lambda: open_runner(model), model)
