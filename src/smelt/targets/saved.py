"""Open the folder of a saved artifact, whichever target wrote it."""

from __future__ import annotations

from pathlib import Path

from smelt.errors import SmeltError, UsageError
from smelt.targets.parts import open_parts
from smelt.targets.registry import find_target, target_names
from smelt.targets.saved_folder import Saved


def open_saved(folder: str | Path) -> Saved:
    """Return the contents of ``folder``, opened by the first target that recognizes it.

    Raises UsageError E616 if no target does.
    """
    if not isinstance(folder, str | Path):
        raise UsageError(
            "E616",
            f"{folder!r} is not a path",
            fix="name the folder of Artifact.save",
            why="the argument is a path as text or as pathlib.Path",
        )
    root = Path(folder)
    parts_artifact = open_parts(root, _of_target)
    if parts_artifact is not None:
        return parts_artifact
    # onnx is last: it accepts every folder with one model, even one of another target.
    for name in sorted(target_names(), key=lambda name: name == "onnx"):
        try:
            target = find_target(name)
        except SmeltError:
            continue  # a package that cannot be loaded must not block other targets
        saved = target.open(root)
        if saved is not None:
            return saved
    raise UsageError(
        "E616",
        f"the folder {str(root)!r} holds nothing that can be run",
        why="no installed target wrote it",
        fix="a folder of `smelt compile --target c`, `host` or `onnx` can be run",
    )


def _of_target(folder: Path, name: str) -> Saved:
    """Open ``folder`` with target ``name``; raises UsageError E616 if the target cannot."""
    saved = find_target(name).open(folder)
    if saved is None:
        raise UsageError(
            "E616",
            f"target {name!r} cannot open the folder {str(folder)!r}",
            fix="compile the model again, or call the artifact in the process that compiles it",
            why="the target finds no artifact there that it can load",
        )
    return saved
