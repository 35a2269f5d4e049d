"""``smelt diff A B``: show the differences between two models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli.arguments import STANDARD, read_model
from smelt.cli.command import Json, command, print_json
from smelt.cli.layout import table
from smelt.cli.progress import progress
from smelt.cli.reporting import Report, reporting
from smelt.cli.terminal import painted_diff
from smelt.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from smelt.check.model_diff import ModelDiff, Weight, Weights

WEIGHTS_SHOWN = 8
"""How many removed, added or changed weights are listed; ``--json`` has all."""


Before = Annotated[
    str, typer.Argument(metavar="A", help="The model before, or - for standard input.")
]
After = Annotated[
    str, typer.Argument(metavar="B", help="The model after, or - for standard input.")
]
Stat = Annotated[bool, typer.Option("--stat", help="Print only the counts, not the text.")]


@command
def diff(
    a: Before,
    b: After,
    stat: Stat = False,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Show the differences between two models.

    Prints the changes of versions, inputs, outputs, operators and weights, then a unified diff of
    the ONNX text. The order of nodes does not count. The exit status is 1 if the models differ.

    Example: smelt diff model.onnx out.onnx --stat
    """
    from smelt.check.model_diff import model_diff

    if a == b == STANDARD:
        raise UsageError(
            "E637",
            "both models are read from standard input",
            why="standard input holds one model",
            fix="give a path for one of them",
        )
    printing = (STANDARD,) if as_json else ()
    with (
        reporting(report, " and ".join(_names(a, b)), *printing, reads=(a, b)) as page,
        progress(f"comparing {a} with {b}"),
    ):
        models = read_model(a, as_is=True), read_model(b, as_is=True)
        difference = model_diff(*models)
        if page.wanted:
            page.report.compare(*models, sides=_names(a, b))
    if as_json:
        print_json({"schema": "smelt.diff/1", **difference.to_json()})
    elif report != STANDARD:
        _show(a, b, difference, stat)
    if difference:
        raise typer.Exit(int(ExitStatus.MISMATCH))


def _show(a: str, b: str, difference: ModelDiff, stat: bool) -> None:
    """Print the counts that differ, then the unified diff unless ``stat`` is set.

    The text can differ between equal models, such as in names of nodes, and is then shown alone.
    """
    if difference:
        text = [] if stat else _text(a, b, difference)
        print(painted_diff("\n".join([*_counts(difference), *text])))
        return
    print("the same nodes, in another order" if difference.reordered else "the same nodes")
    if difference.text and not difference.reordered and not stat:
        print(painted_diff("\n".join(_text(a, b, difference))))


def _names(a: str, b: str) -> tuple[str, str]:
    """Return the names of both files, with their folders if the names are equal."""
    names = Path(a).name, Path(b).name
    return (a, b) if names[0] == names[1] else names


def _counts(difference: ModelDiff) -> Iterator[str]:
    """Yield lines for versions, interface, operators and weights that differ."""
    from smelt.ir.listing import printable

    for name, pair in difference.versions.items():
        old, new = ("none" if number is None else number for number in pair)
        yield printable(f"{name}: {old} -> {new}")
    yield from (printable(f"! {line}") for line in difference.interface)
    rows: list[tuple[Any, ...]] = [
        (printable(name), before, after, f"{after - before:+}")
        for name, (before, after) in difference.operators.items()
        if before != after
    ]
    total = [sum(pair[side] for pair in difference.operators.values()) for side in (0, 1)]
    rows.append(("all nodes", *total, f"{total[1] - total[0]:+}"))
    yield table(rows, ("operator", "before", "after", "change"))
    yield from _weights(difference.weights)


def _weights(weights: Weights) -> Iterator[str]:
    """Yield lines for the totals of the weights, then those removed, added and changed."""
    (count, size), (count_after, size_after) = weights.before, weights.after
    yield f"weights: {count} -> {count_after}, {size:,} -> {size_after:,} bytes"
    yield from _first_lines([f"  - {_weight(weight)}" for weight in weights.removed])
    yield from _first_lines([f"  + {_weight(weight)}" for weight in weights.added])
    changed = [
        f"  ! {_weight(old)}: {'other elements' if old == new else f'now {new.type}'}"
        for old, new in weights.changed
    ]
    yield from _first_lines(changed)


def _first_lines(lines: Sequence[str]) -> Iterator[str]:
    """Yield the first ``WEIGHTS_SHOWN`` lines, then a line with the number of the others."""
    from smelt.ir.listing import printable

    yield from map(printable, lines[:WEIGHTS_SHOWN])
    if len(lines) > WEIGHTS_SHOWN:
        yield f"  {lines[0].split()[0]} and {len(lines) - WEIGHTS_SHOWN} others"


def _weight(weight: Weight) -> str:
    """Return name, type and size of a weight as text."""
    return f"{weight.name} {weight.type}, {weight.bytes:,} bytes"


def _text(a: str, b: str, difference: ModelDiff) -> list[str]:
    """Return the lines of the unified diff, with a header that names both files."""
    from smelt.ir.listing import printable

    return ["", printable(f"--- {a}"), printable(f"+++ {b}"), *difference.text]
