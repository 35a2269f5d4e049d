"""Check that a target writes files that other programs read."""

from __future__ import annotations

from collections.abc import Sequence

from smelt.errors import UsageError
from smelt.targets.base import Target


def refuse_consumers(consumers: str | Sequence[str], target: Target) -> None:
    """Raise UsageError E612 if consumers are named for a target that does not write plain ONNX."""
    if consumers and (target.operators or not target.onnx_runtime):
        written = "operators of its own" if target.onnx_runtime else "no ONNX file"
        raise UsageError(
            "E612",
            f"the target {target.name} takes no consumers",
            why=f"it writes {written}, and consumers are programs that read ONNX files",
            fix="--target onnx, or leave out --for",
        )
