"""``smelt diff A B``: which nodes went, which came."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from smelt.cli.arguments import STANDARD, read_model
from smelt.cli.command import Json, command, print_json
from smelt.errors import ExitStatus, UsageError


@command
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The model before.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The model after.")],
    as_json: Json = False,
) -> None:
    """Show what differs between two models in interface and nodes.

    A node counts as the same if it has the same operator, attributes, inputs and outputs. The
    exit status is 1 if anything differs.
    """
    from smelt.check.agreement import disagreements
    from smelt.check.changes import node_changes
    from smelt.ir import scope
    from smelt.runtime.interface import interface_of

    if a == b == STANDARD:
        raise UsageError("E637", "only one model can come from standard input")
    before, after = read_model(a, as_is=True), read_model(b, as_is=True)
    interface = disagreements(interface_of(before), interface_of(after))
    removed, added = node_changes(before, after)
    counts = Counter(node.op_type for node in scope.nodes(after))
    counts.subtract(Counter(node.op_type for node in scope.nodes(before)))
    changed = {name: count for name, count in sorted(counts.items()) if count}
    if as_json:
        print_json(
            {
                "schema": "smelt.diff/1",
                "interface": interface,
                "operators": changed,
                "removed": removed,
                "added": added,
            }
        )
    else:
        lines = [f"! {item}" for item in interface]
        lines += [f"- {text}" for text in removed] + [f"+ {text}" for text in added]
        lines += [f"{count:+} {name}" for name, count in changed.items()]
        print("\n".join(lines) or "the same nodes")
    if interface or removed or added:
        raise typer.Exit(int(ExitStatus.MISMATCH))
