"""Open the folder that an artifact was saved to, whichever target wrote it."""

from __future__ import annotations

from pathlib import Path

from smelt.errors import SmeltError, UsageError
from smelt.targets.base import Saved
from smelt.targets.registry import find_target, target_names

RUNNABLE = "a folder of `smelt compile --target c` or `--target onnx` can be run"


def open_saved(folder: str | Path) -> Saved:
    """What ``folder`` holds, by the first target that knows it.

    Raises UsageError E616 if none does.
    """
    root = Path(folder)
    for name in target_names():
        try:
            target = find_target(name)
        except SmeltError:
            continue  # a package that cannot be loaded stands in nobody's way
        saved = target.open(root)
        if saved is not None:
            return saved
    what = f"the folder {str(root)!r} holds nothing that can be run"
    if (root / "program.py").is_file() and (root / "memory.txt").is_file():
        raise UsageError(
            "E616",
            what,
            why="a host program lives in the process that compiled it; its files are for reading",
            fix="compile and run in one: `smelt run MODEL --target host`",
        )
    raise UsageError("E616", what, why="no installed target wrote it", fix=RUNNABLE)
