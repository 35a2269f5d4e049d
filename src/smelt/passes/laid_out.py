"""A pipeline written out, one pass a line, for people to read and to edit."""

from __future__ import annotations

from collections.abc import Iterator

from smelt.passes.pipeline import Fixpoint, Steps

STEP = "  "


def laid_out(steps: Steps, indent: str = "") -> str:
    """The canonical text of ``steps`` on several lines; parsing it gives them back."""
    return "\n".join(_lines(steps, indent))


def _lines(steps: Steps, indent: str) -> Iterator[str]:
    for index, step in enumerate(steps):
        comma = "," if index < len(steps) - 1 else ""
        if isinstance(step, Fixpoint):
            yield f"{indent}fixpoint("
            yield from _lines(step.steps, indent + STEP)
            yield f"{indent}){{max={step.rounds}}}{comma}"
        else:
            yield f"{indent}{step}{comma}"
