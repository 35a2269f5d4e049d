"""Print a pipeline with one pass on each line, for people to read and edit."""

from __future__ import annotations

from collections.abc import Iterator

from smelt.passes.pipeline import Fixpoint, Steps

STEP = "  "


def indented_text(steps: Steps, indent: str = "") -> str:
    """Return ``steps`` as canonical pipeline text of several lines; ``parse`` reads it back."""
    return "\n".join(_lines(steps, indent))


def _lines(steps: Steps, indent: str) -> Iterator[str]:
    """Yield the lines of ``steps``; a fixpoint indents its steps by one more level."""
    for index, step in enumerate(steps):
        comma = "," if index < len(steps) - 1 else ""
        if isinstance(step, Fixpoint):
            yield f"{indent}fixpoint("
            yield from _lines(step.steps, indent + STEP)
            yield f"{indent}){{max={step.rounds}}}{comma}"
        else:
            yield f"{indent}{step}{comma}"
