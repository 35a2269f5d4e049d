"""Write a failing command as a folder that replays it.

Files that the command reads are copied into the folder; its outputs are redirected there.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MODEL_LIMIT = 100 << 20
"""The largest model, in bytes, that is copied into a reproducer."""

OUTPUTS = ("-o", "--output", "--report", "--trace")
"""Options whose value is a file that the command writes."""


def reproducer_of(arguments: Sequence[str], error: BaseException) -> str:
    """Write a reproducer of ``error``, raised by ``smelt`` with ``arguments``; return its folder.

    The folder holds the first model that the command reads, the module of a function, and the
    pipeline file. Raises OSError or SmeltError if it cannot be written.
    """
    from smelt.check.reproducer import write_reproducer

    folder = Path(tempfile.mkdtemp(prefix="smelt-reproducer-"))
    replayed: list[str] = []
    model: bytes | None = None
    for argument in arguments:
        option, value = _option_and_value(argument)
        path = Path(value)
        previous_argument = replayed[-1] if replayed else ""
        name_of_option = (option or previous_argument).rstrip("=")
        if name_of_option in OUTPUTS:
            replayed.append(f"{option}out{path.suffix}" if value != "-" else argument)
        elif value.startswith("@") and Path(value[1:]).is_file():
            (folder / "pipeline.txt").write_bytes(Path(value[1:]).read_bytes())
            replayed.append(f"{option}@pipeline.txt")
        elif model is None and _is_small_file(path):
            model = path.read_bytes()
            replayed.append("model.onnx")
        else:
            _copy_module(argument.partition(":")[0], folder)
            replayed.append(argument)
    write_reproducer(folder, replayed, model_bytes=model, error=error, path=(str(Path.cwd()),))
    return str(folder)


def _option_and_value(argument: str) -> tuple[str, str]:
    """Return ``("--name=", value)`` for an argument of that form, else ``("", argument)``."""
    name, equals, value = argument.partition("=")
    return (name + equals, value) if equals and name.startswith("--") else ("", argument)


def _is_small_file(path: Path) -> bool:
    """True if ``path`` is a file that is small enough to copy."""
    return path.is_file() and path.stat().st_size <= MODEL_LIMIT


def _copy_module(name: str, folder: Path) -> None:
    """Copy the imported module ``name`` into ``folder`` if it is one file.

    A package is not copied: the replay imports the installed one.
    """
    source = getattr(sys.modules.get(name), "__file__", None)
    if source is not None and "." not in name and Path(source).name == f"{name}.py":
        (folder / f"{name}.py").write_bytes(Path(source).read_bytes())
