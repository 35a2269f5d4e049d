"""Files that a command writes beside its result, refused before it begins to work."""

from __future__ import annotations

from pathlib import Path

from smelt.errors import UsageError


def check_destination(path: str, word: str, *files: str | None) -> None:
    """Raise UsageError E614 if there is no folder for ``path``, E637 if it is one of ``files``.

    ``word`` says what is to be written, ``files`` are what else the command reads and writes.
    """
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        why = "it is a folder, not a file" if Path(path).is_dir() else "no such folder"
        raise UsageError("E614", f"cannot write to {path!r}", why=why)
    if Path(path).resolve() in {Path(file).resolve() for file in files if file}:
        raise UsageError("E637", f"the {word} would take the place of {path!r}")
