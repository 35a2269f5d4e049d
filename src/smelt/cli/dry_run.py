"""``--dry-run``: print what a command that runs passes would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.command import note, print_json
from smelt.cli.layout import prose

if TYPE_CHECKING:
    from smelt.passes.pipeline import Steps
    from smelt.targets.preview import Preview

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Print the passes that would run; read and write nothing."),
]


def show_dry_run(
    pipeline: str | Steps,
    as_json: bool,
    target: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Print the passes of ``pipeline``, and on standard error the further steps of ``target``.

    The text on standard output, passed back as ``--pipeline``, runs the same passes without options
    such as ``--fast-math`` that add passes.
    """
    from smelt.passes.indented_text import indented_text
    from smelt.targets.preview import preview

    plan = preview(pipeline, target, options)
    if as_json:
        print_json({"schema": "smelt.dry-run/1", **plan.to_json()})
        return
    print(indented_text(plan.steps))
    _show_rest(plan)


def _show_rest(plan: Preview) -> None:
    """Print on standard error the target's own passes, its phases, and passes without effect."""
    from smelt.cli.passes import makes
    from smelt.passes.indented_text import indented_text
    from smelt.targets.phases import phases

    if plan.own:
        note(f"\ntarget {plan.target.name if plan.target else ''} adds passes of its own:\n")
        note(indented_text(plan.own))
    if plan.target is not None:
        note(f"\nphases of target {plan.target.name}:")
        for name, what in phases(plan.target).items():
            note(prose(f"  {name}: {what}"))
    if plan.idle:
        names = ", ".join(f"{item.spelling} (makes {makes(item)})" for item in plan.idle)
        note(prose(f"\nwithout effect, as the target has no such operators: {names}"))
    note("\nnothing was read or written")
