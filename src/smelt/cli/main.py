"""The command line: one file a command, and nothing heavy imported before a command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from smelt.cli.bisect import bisect
from smelt.cli.compile import compile_
from smelt.cli.convert import convert
from smelt.cli.diff import diff
from smelt.cli.explain import explain
from smelt.cli.inspect import inspect
from smelt.cli.optimize import optimize
from smelt.cli.passes import passes
from smelt.cli.targets import targets
from smelt.cli.verify import verify

COMMANDS: Mapping[str, Callable[..., None]] = {
    "convert": convert,
    "optimize": optimize,
    "compile": compile_,
    "verify": verify,
    "inspect": inspect,
    "diff": diff,
    "bisect": bisect,
    "passes": passes,
    "targets": targets,
    "explain": explain,
}

app = typer.Typer(
    name="smelt",
    help="A retargetable tensor-graph compiler: JAX or ONNX in; ONNX, C or a program out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, function in COMMANDS.items():
    app.command(name)(function)


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
