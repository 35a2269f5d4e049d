"""Detect the files of Core ML: packages, model files, and their bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUFFIXES = (".mlpackage", ".mlmodel")
FROM_CORE_ML = "smelt.from_core_ml"
"""Key in ``model.meta`` of a model that was read from a package; files do not have it."""

_MARK = "#"
_LEAST = 200
"""In Core ML's protobuf, fields of model types have numbers from here on; ONNX has lower ones."""


def split_function(source: str | Path) -> tuple[Path, str]:
    """Return ``(path, function)`` for ``package.mlpackage#function``; "" without a function."""
    path = Path(source)
    begin, mark, name = path.name.rpartition(_MARK)
    if mark and not path.exists() and begin.endswith(SUFFIXES):
        return path.with_name(begin), name
    return path, ""


def is_core_ml(source: Any) -> bool:
    """True if ``source`` is a Core ML package or model file.

    It may be a path, the bytes of a model file, or a model that was read from one of them.
    """
    if isinstance(marks := getattr(source, "meta", None), Mapping):
        return FROM_CORE_ML in marks
    if isinstance(source, bytes):
        return source[:1] == b"\x08" and _has_core_ml_type(source)
    if not isinstance(source, str | Path) or "\0" in str(source):
        return False
    path, _ = split_function(source)
    return path.suffix in SUFFIXES


def _has_core_ml_type(data: bytes) -> bool:
    """True if the protobuf message ``data`` has a field that only Core ML models have."""
    from smelt.mlpackage.schema import MESSAGES  # imported late: commands ask for each path
    from smelt.mlpackage.wire import MalformedMessage, field_numbers

    types = {field.number for field in MESSAGES["Model"] if field.number >= _LEAST}
    try:
        return not types.isdisjoint(field_numbers(data))
    except MalformedMessage:
        return False
