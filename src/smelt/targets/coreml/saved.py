"""Open a folder that holds a Core ML package, or is one."""

from __future__ import annotations

from pathlib import Path

from smelt.frontends.coreml.load import read_core_ml
from smelt.mlpackage.write import MANIFEST, MODEL_FILE
from smelt.runtime.interface import interface_of
from smelt.runtime.runner import open_runner
from smelt.targets.saved_folder import Saved


def open_folder(folder: Path) -> Saved | None:
    """Return the package that ``folder`` is or holds; None unless there is exactly one.

    The Core ML frontend reads the package as an ONNX model, which runs in ONNX Runtime.
    """
    candidates = [folder, *sorted(folder.glob("*.mlpackage"))]
    packages = [each for each in candidates if (each / MANIFEST).is_file()]
    if len(packages) != 1 or not (packages[0] / MODEL_FILE).is_file():
        return None
    model = read_core_ml(packages[0])
    return Saved("coreml", interface_of(model), lambda: open_runner(model), model)
