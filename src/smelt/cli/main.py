"""The command line: one file a command, and nothing heavy imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from smelt.cli.inspect import inspect
from smelt.cli.verify import verify

app = typer.Typer(
    name="smelt",
    help="A retargetable tensor-graph compiler: JAX or ONNX in; ONNX, C or a program out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in (verify, inspect):
    app.command()(function)


def _version(wanted: bool) -> None:
    if wanted:
        from smelt import __version__

        print(f"smelt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of smelt itself."""


def run() -> None:
    """Entry point of the console script."""
    app()
