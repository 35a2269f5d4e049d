"""Pickle artifacts as the selected model in ONNX and the target that remakes the artifact.

Compiled code is no part of a pickle; it comes from the cache on the same CPU, else it is compiled
again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from smelt.errors import UsageError
from smelt.frontends.onnx import load, to_proto
from smelt.targets.backend import emit_selected
from smelt.targets.base import Artifact
from smelt.targets.registry import find_target, target_names

Remake: TypeAlias = Callable[[str, bytes, Any, dict[str, Any]], Artifact]
Pickled: TypeAlias = tuple[Remake, tuple[str, bytes, Any, dict[str, Any]]]


def pickled(artifact: Artifact) -> Pickled:
    """Return what ``pickle`` stores for ``artifact``.

    Raises UsageError E616 for an artifact in parts, ResourceLimit E504 if its weights do not fit
    into one ONNX file.
    """
    if artifact.target not in target_names():
        raise UsageError(
            "E616",
            f"an artifact for {artifact.target!r} cannot be pickled",
            fix="save it to a folder, and open that with smelt.load_artifact",
            why="its class keeps objects that belong to this process",
        )
    data = to_proto(artifact.model, keep_bare=True).SerializeToString()
    return emit_again, (artifact.target, data, artifact.plan.options, artifact.report)


def emit_again(target: str, data: bytes, options: Any, report: dict[str, Any]) -> Artifact:
    """Return the artifact that ``target`` emits for the selected model in ``data``."""
    artifact = emit_selected(load(data, keep_opset=True), find_target(target), options)
    artifact.report.update(report)
    return artifact
