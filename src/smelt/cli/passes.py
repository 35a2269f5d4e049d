"""``smelt passes``: list every registered pass."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.command import Json, command, print_json
from smelt.cli.layout import prose, table, width
from smelt.cli.terminal import painted

if TYPE_CHECKING:
    from smelt.passes.base import Pass

NARROW = 130
"""The width below which each pass has lines of its own instead of a row of the table."""

WIDE = 200
"""The width from which the table also has the columns "makes" and "source"."""


Markdown = Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")]


@command
def passes(
    markdown: Markdown = False,
    as_json: Json = False,
) -> None:
    """List all passes, and how each changes numbers.

    Example: smelt passes
    """
    from smelt.passes.registry import passes as registered
    from smelt.passes.registry import unloadable_passes

    listed = [registered()[name] for name in sorted(registered())]
    if as_json:
        print_json(
            {
                "schema": "smelt.passes/1",
                "passes": [describe(item) for item in listed],
                "broken": dict(unloadable_passes()),
            }
        )
    elif markdown:
        print(markdown_table(listed))
    else:
        rows = [
            (p.spelling, str(p.exactness), _default(p), p.summary, makes(p), p.source)
            for p in listed
        ]
        limit = width()
        rows += [(name, "?", "no", reason, "", "") for name, reason in unloadable_passes().items()]
        if limit is not None and limit < NARROW:
            print("\n".join(_entry(row, limit) for row in rows))
            return
        shown = 6 if limit is not None and limit >= WIDE else 4
        header = ("pass", "results", "default", "summary", "makes", "source")
        print(table([row[:shown] for row in rows], header[:shown]))


def _entry(row: tuple[str, ...], limit: int) -> str:
    """Return a pass as lines of at most ``limit`` columns: its name and facts, then its summary."""
    name, results, default, what, *_ = row
    facts = f"{results}, by default" if default == "yes" else results
    indented = [prose(f"    {text}", limit) for text in (what, f"({facts})")]
    return "\n".join([painted(name, "bold", sys.stdout), *indented])


def _default(pass_: Pass) -> str:
    """Return "yes" if the default pipeline has the pass, else "no"."""
    return "yes" if pass_.default else "no"


def makes(pass_: Pass) -> str:
    """Return the operators beyond ONNX that a pass creates; only targets that list them run it."""
    return ", ".join(f"{domain}.{op_type}" for domain, op_type in pass_.makes)


def describe(pass_: Pass) -> dict[str, Any]:
    """Return a pass as plain data."""
    return {
        "name": pass_.spelling,
        "summary": pass_.summary,
        "results": str(pass_.exactness),
        "default": pass_.default,
        "after": [name.replace("_", "-") for name in pass_.after],
        "before": [name.replace("_", "-") for name in pass_.before],
        "makes": makes(pass_),
        "options": options_of(pass_),
        "source": pass_.source,
    }


def options_of(pass_: Pass) -> dict[str, str]:
    """Return the default of each option of a pass, by the name that a pipeline uses."""
    if pass_.options_type is None:
        return {}
    import dataclasses

    defaults = pass_.options_type()
    return {
        field.name.replace("_", "-"): str(getattr(defaults, field.name))
        for field in dataclasses.fields(pass_.options_type)
    }


def markdown_table(listed: list[Pass]) -> str:
    """Return the table of ``docs/passes.md``."""
    lines = ["| pass | results | default | what it does | makes | source |", "|---" * 6 + "|"]
    for pass_ in listed:
        summary = pass_.summary.replace("``", "`").replace("|", "\\|")
        facts = (_default(pass_), summary, makes(pass_), pass_.source)
        lines.append(f"| `{pass_.spelling}` | {pass_.exactness} | {' | '.join(facts)} |")
    return "\n".join(lines)
