"""Detect files and values of ``jax.export`` without importing JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ONNX = b"\x08"
"""The first byte of an ONNX file: the field of the IR version."""

_MODULE = b"StableHLO_v"
"""The text in the header of the module in a serialized function."""


def is_exported(source: Any) -> bool:
    """True for a ``jax.export.Exported``, its serialized bytes, or a file of these bytes."""
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.is_file():
            return False
        with path.open("rb") as file:
            begin = file.read(1)
            return begin not in (_ONNX, b"") and _MODULE in begin + file.read()
    if isinstance(source, bytes | bytearray):
        return source[:1] != _ONNX and _MODULE in source
    kind = type(source)
    return kind.__name__ == "Exported" and kind.__module__.partition(".")[0] == "jax"
