"""Write a folder that replays a failure: the model, the pipeline, the versions, one script."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import traceback
from collections.abc import Sequence
from contextvars import ContextVar
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.distribution import VERSION
from smelt.errors import SmeltError
from smelt.ir.files import write_atomically

if TYPE_CHECKING:
    import onnx_ir as ir

SCHEMA = "smelt.reproducer/1"
PACKAGES = (
    "onnx",
    "onnx-ir",
    "onnx-shape-inference",
    "numpy",
    "ml-dtypes",
    "onnxruntime",
    "jax",
)
MODEL = "model.onnx"
PIPELINE = "pipeline.txt"

real_weights: ContextVar[bool] = ContextVar("smelt.real_weights", default=False)
"""Whether reproducers contain the real weights of a model instead of random ones."""


def write_reproducer(
    folder: str | Path,
    command: Sequence[str],
    *,
    model: ir.Model | None = None,
    model_bytes: bytes | None = None,
    pipeline: str | None = None,
    error: BaseException | None = None,
    path: Sequence[str] = (),
) -> Path:
    """Write a reproducer into ``folder``, which is created, and return its path.

    ``command`` are the arguments of ``smelt`` in ``repro.sh``, relative to the folder: the model is
    ``model.onnx``, the pipeline ``@pipeline.txt``. ``path`` are folders for PYTHONPATH. The model
    gets random weights of the same scale (``scrub.py``) unless ``real_weights`` is set. Without
    ``real_weights``, ``model_bytes`` that cannot be parsed are not written.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    if model is not None:
        _write_model(model, root / MODEL)
    elif model_bytes is not None:
        data = model_bytes if real_weights.get() else _without_weights(model_bytes)
        if data is not None:
            write_atomically(root / MODEL, data)
    if pipeline is not None:
        write_atomically(root / PIPELINE, f"{pipeline}\n".encode())
    line = shlex.join([sys.executable, "-m", "smelt", *command])
    imports = f"PYTHONPATH={shlex.quote(os.pathsep.join(path))}:. " if path else ""
    script = (
        f'#!/bin/sh\n# Replays the failure.\ncd "$(dirname "$0")" && {imports}exec {line} "$@"\n'
    )
    write_atomically(root / "repro.sh", script.encode())
    report = {
        "schema": SCHEMA,
        "command": list(command),
        "versions": versions(),
        "error": _error(error),
    }
    text = json.dumps(report, indent=2) + "\n"
    write_atomically(root / "report.json", text.encode())
    return root


def _write_model(model: ir.Model, path: Path) -> None:
    """Write the model, with random weights unless ``real_weights`` is set."""
    from smelt.check.scrub import scrub
    from smelt.frontends.onnx import save

    if not real_weights.get():
        model = model.clone()
        scrub(model)
    save(model, path, keep_bare=True)


def _without_weights(data: bytes) -> bytes | None:
    """Return the model in ``data`` with random weights; None if it cannot be parsed."""
    import onnx
    import onnx_ir as ir

    from smelt.check.scrub import scrub

    try:
        model = ir.from_proto(onnx.load_model_from_string(data))
        scrub(model)
        scrubbed: bytes = ir.to_proto(model).SerializeToString(deterministic=True)
    except Exception:  # noqa: BLE001 - an unreadable model may be the failure to reproduce
        return None
    return scrubbed


def versions() -> dict[str, str]:
    """Return the versions of smelt, Python and the packages that affect results."""
    numbers = {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "smelt": VERSION,
    }
    for package in PACKAGES:
        try:
            numbers[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            numbers[package] = "not installed"
    return numbers


def _error(error: BaseException | None) -> dict[str, Any] | None:
    """Return ``error`` as plain data."""
    if error is None:
        return None
    if isinstance(error, SmeltError):
        return error.to_json()
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": traceback.format_exception(error),
    }
