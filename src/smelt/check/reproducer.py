"""A folder that replays a failure: the model, the pipeline, the versions, one script."""

from __future__ import annotations

import json
import platform
import shlex
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.errors import SmeltError
from smelt.ir.files import write_atomically

if TYPE_CHECKING:
    import onnx_ir as ir

SCHEMA = "smelt.reproducer/1"
PACKAGES = (
    "smelt",
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


def write_reproducer(
    folder: str | Path,
    command: Sequence[str],
    *,
    model: ir.Model | None = None,
    model_bytes: bytes | None = None,
    pipeline: str | None = None,
    error: BaseException | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write a reproducer into ``folder``, which is made, and return its path.

    ``command`` are the arguments after ``smelt`` in ``repro.sh``, relative to the folder, where
    the model is ``model.onnx`` and the pipeline ``@pipeline.txt``.
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    if model is not None:
        from smelt.frontends.onnx import save

        save(model, root / MODEL, keep_bare=True)
    elif model_bytes is not None:
        write_atomically(root / MODEL, model_bytes)
    if pipeline is not None:
        write_atomically(root / PIPELINE, f"{pipeline}\n".encode())
    line = shlex.join(["smelt", *command])
    script = f'#!/bin/sh\n# Replays the failure.\ncd "$(dirname "$0")" && exec {line}\n'
    write_atomically(root / "repro.sh", script.encode())
    report = {
        "schema": SCHEMA,
        "command": list(command),
        "versions": versions(),
        "error": _error(error),
        **(facts or {}),
    }
    text = json.dumps(report, indent=2) + "\n"
    write_atomically(root / "report.json", text.encode())
    return root


def versions() -> dict[str, str]:
    """The versions of smelt, Python and the packages that decide a result."""
    found = {"python": sys.version.split()[0], "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _error(error: BaseException | None) -> dict[str, Any] | None:
    if error is None:
        return None
    if isinstance(error, SmeltError):
        return error.to_json()
    return {
        "type": type(error).__name__,
        "message": str(error),
        "traceback": traceback.format_exception(error),
    }
