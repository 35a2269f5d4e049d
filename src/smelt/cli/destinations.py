"""Check, before a command starts, that its additional output files can be written."""

from __future__ import annotations

from pathlib import Path

from smelt.errors import UsageError


def check_destination(path: str, word: str, *files: str | None) -> None:
    """Raise UsageError E614 if ``path`` has no folder, E637 if it equals one of ``files``.

    ``word`` names the output, such as "report"; ``files`` are the other files of the command.
    """
    if Path(path).is_dir() or not Path(path).parent.is_dir():
        why = "it is a folder, not a file" if Path(path).is_dir() else "no such folder"
        raise UsageError(
            "E614",
            f"cannot write to {path!r}",
            why=why,
            fix="create the folder first, or choose another path",
        )
    if Path(path).resolve() in {Path(file).resolve() for file in files if file}:
        raise UsageError(
            "E637",
            f"the {word} would overwrite {path!r}",
            why="the command reads or writes that file, too",
            fix=f"choose another path for the {word}",
        )
