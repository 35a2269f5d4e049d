"""Describe what a command would run, without a model: the pipeline and the target's part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from smelt.passes import pipeline as language
from smelt.passes.base import Pass
from smelt.passes.pipeline import Steps
from smelt.targets.base import Target
from smelt.targets.options import read_options
from smelt.targets.phases import phases
from smelt.targets.registry import find_target
from smelt.targets.support import operators_beyond_onnx


@dataclass(frozen=True)
class Preview:
    """``steps`` are the requested pipeline, ``own`` the passes that ``target`` adds.

    ``idle`` are passes in both that do nothing, because they make operators the target lacks.
    """

    steps: Steps
    target: Target | None
    own: Steps
    idle: tuple[Pass, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the preview as JSON data; pipelines are written as text."""
        return {
            "pipeline": language.to_text(self.steps),
            "target": self.target.name if self.target else None,
            "target_pipeline": language.to_text(self.own),
            "phases": phases(self.target) if self.target else {},
            "idle": [pass_.spelling for pass_ in self.idle],
        }


def preview(
    pipeline: str | Steps,
    target: str | Target | None = None,
    options: Mapping[str, Any] | None = None,
) -> Preview:
    """Return what ``pipeline`` runs, for ``target`` if one is given, checked as in a compile.

    Raises UsageError E601 to E604 for the pipeline, E611 for the target, E660 for its options.
    """
    steps = language.parse(pipeline) if isinstance(pipeline, str) else pipeline
    if target is None:
        return Preview(steps, target=None, own=(), idle=_idle(steps, frozenset()))
    chosen = find_target(target)
    read_options(chosen, options or {})
    target_passes = language.parse(chosen.passes)
    language.check_order((*steps, *target_passes))
    idle = _idle((*steps, *target_passes), operators_beyond_onnx(chosen))
    return Preview(steps, chosen, target_passes, idle)


def _idle(steps: Steps, operators: frozenset[tuple[str, str]]) -> tuple[Pass, ...]:
    """Return the passes that create operators outside of ``operators``, each once."""
    makers = [each for each in language.passes_of(steps) if not operators.issuperset(each.makes)]
    return tuple({each.name: each for each in makers}.values())
