"""``--print-changed`` and ``--print-after``, for every command that runs passes.

::

    with printed(print_changed, print_after, print_limit) as observers:
        optimize_model(..., observers=observers)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from smelt.cli import completion
from smelt.cli.command import note
from smelt.cli.terminal import painted_diff

if TYPE_CHECKING:
    from smelt.passes.run import Observer

WITHOUT_VALUE: Mapping[str, str] = {"--print-changed": "all", "--print-after": "all"}
"""Options with an optional value, and its default; a given value follows ``=``."""

PrintChanged = Annotated[
    str | None,
    typer.Option(
        "--print-changed",
        metavar="[=PASS,...]",
        help="Print a diff of the ONNX text after each pass, or after the named passes.",
        autocompletion=completion.passes,
    ),
]
PrintAfter = Annotated[
    str | None,
    typer.Option(
        "--print-after",
        metavar="[=PASS,...]",
        help="Print the model after each pass, or after the named passes.",
        autocompletion=completion.passes,
    ),
]
PrintLimit = Annotated[
    int,
    typer.Option(
        "--print-limit", min=0, metavar="N", help="The most lines per print; 0 prints all of them."
    ),
]

LINES = 200
"""The default of ``--print-limit``."""


@contextmanager
def printed(changed: str | None, after: str | None, limit: int) -> Iterator[list[Observer]]:
    """Yield observers that print on standard error what passes do; raises UsageError E601."""
    if changed is None and after is None:
        yield []
        return
    from smelt.check.print_passes import PrintPasses, wanted_passes

    def write(text: str) -> None:
        """Print ``text`` on standard error, with the colours of a diff."""
        note(painted_diff(text, sys.stderr))

    printer = PrintPasses(write, wanted_passes(changed), wanted_passes(after), limit)
    yield [printer]
    printer.finish()
