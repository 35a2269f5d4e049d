"""The options of the target ``onnx``."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.errors import UsageError


@dataclass(frozen=True)
class Options:
    """What the target writes.

    ``name``: the file is ``NAME.onnx``; raises UsageError E660 for an impossible name.

    ``keep_bfloat16``: keep bfloat16 values that ONNX Runtime has no kernels for. ``functions``:
    write operators beyond ONNX as model-local functions, not in line.
    """

    name: str = "model"
    keep_bfloat16: bool = False
    functions: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError E660 if ``name`` is not the name of a file."""
        if not self.name.strip(".") or set(self.name) & set("/\\\0:"):
            raise UsageError(
                "E660",
                f"the option name of target onnx cannot be {self.name!r}",
                why="NAME.onnx must be a file name: not only dots, and without / \\ : and NUL",
                fix="--option name=model writes model.onnx",
            )
