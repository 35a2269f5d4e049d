"""Which files and values are what ``jax.export`` gave, found out without importing JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_ONNX = b"\x08"
"""How files of ONNX begin: with the version of the format."""

_MODULE = b"StableHLO_v"
"""What the module names at its beginning that a serialized function holds."""


def is_exported(source: Any) -> bool:
    """True for a ``jax.export.Exported``, what its ``serialize`` gave, and files of that."""
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
