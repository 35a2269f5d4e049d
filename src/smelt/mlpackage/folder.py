"""Find and read the files of an ``.mlpackage`` folder; paths that leave the folder are refused."""

from __future__ import annotations

import json
import mmap
import stat
from pathlib import Path
from typing import Any

from smelt.errors import InvalidModel, ResourceLimit, UsageError

MANIFEST = "Manifest.json"
MAX_MANIFEST = 1 << 20
"""The most bytes of a manifest that is read; coremltools writes about 600."""
MAX_MODEL = 2**31 - 1
"""The most bytes of a protobuf message."""
MODEL_FOLDER = "@model_path/"
"""The prefix of weight files' names in a program; it stands for the folder of the model file."""

Data = bytes | mmap.mmap


def model_file(package: Path) -> Path:
    """Return the path of the model in the folder ``package``, which its manifest names.

    Raises InvalidModel E302 for a manifest that names none, E313 for a path outside of the folder.
    """
    try:
        manifest = json.loads(read_file(package / MANIFEST, MAX_MANIFEST))
        root = manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise InvalidModel(
            "E302",
            f"the manifest of {package.name!r} names no model",
            at=MANIFEST,
            why=f"{type(error).__name__}: {error}"[:200],
            fix="copy the package again, whole: it is a folder",
        ) from error
    return inside(package / "Data", root, "the manifest")


def inside(folder: Path, name: Any, named_by: str) -> Path:
    """Return the path of the file ``name`` in ``folder``; raises InvalidModel E313 if it leaves it.

    ``named_by`` says in the error which part of the package has the name.
    """
    usable = isinstance(name, str) and name and "\0" not in name
    path = folder / name if usable else folder
    try:
        resolved, root = path.resolve(), folder.resolve()
        is_inside = usable and resolved != root and resolved.is_relative_to(root)
    except (OSError, RuntimeError):
        is_inside = False
    if not is_inside:
        raise InvalidModel(
            "E313",
            f"{named_by} names a file outside of the package",
            at=repr(name)[:200],
            why="a package is read only from files inside its own folder",
            fix="save the package again",
        )
    return path


def read_file(path: Path, most: int = MAX_MODEL) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes; raises E609 or E503."""
    _check_file(path, most)
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error


class WeightFiles:
    """The weight files of a package, memory-mapped when they are first read.

    ``folder`` is the folder of the model file, None for a model that was given as bytes.
    """

    def __init__(self, folder: Path | None) -> None:
        """Open no file yet."""
        self.folder = folder
        self._open: dict[str, Data] = {}

    def data(self, name: str) -> Data:
        """Return the bytes of the file ``name``; raises E313, E314 or E609."""
        if name not in self._open:
            if self.folder is None:
                raise InvalidModel(
                    "E314",
                    f"the weight file {name!r} is missing",
                    why="the model was given as bytes, without the package around it",
                    fix="give the path of the .mlpackage",
                )
            path = inside(self.folder, name.removeprefix(MODEL_FOLDER), "a weight")
            self._open[name] = _mapped(path)
        return self._open[name]


def _mapped(path: Path) -> Data:
    """Return the file ``path`` memory-mapped, or ``b""`` if it is empty; raises E609."""
    _check_file(path, None)
    try:
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                return b""
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error


def _check_file(path: Path, most: int | None) -> None:
    """Raise UsageError E609 if ``path`` is no regular file, E503 if it is too large."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from error
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(path, "it is not a regular file")
    if most is not None and status.st_size > most:
        raise ResourceLimit(
            "E503",
            f"{path.name!r} has {status.st_size:,} bytes",
            why=f"at most {most:,} bytes are read",
            fix="keep the weights in the weight file of the package",
        )


def _unreadable(path: Path, why: str) -> UsageError:
    """Return error E609 for a file that cannot be read."""
    fix = "check the path, and that the package is whole"
    return UsageError("E609", f"cannot read {str(path)!r}", why=why, fix=fix)
