"""The options of smelt itself, such as ``--quiet``: what each puts into effect."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from smelt.cli.command import quiet as quiet_mode
from smelt.cli.known_commands import COMMANDS
from smelt.cli.settings.options import Option, all_options
from smelt.cli.terminal import When, color


def _version(is_set: bool) -> None:
    """Print the version and exit if ``--version`` is given."""
    if is_set:
        from smelt import __version__

        print(f"smelt {__version__}")
        raise typer.Exit


def _be_verbose(is_set: bool) -> bool:
    """Log on standard error what smelt skips if ``--verbose`` is given. Return ``is_set``."""
    if is_set:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("smelt: %(message)s"))
        log = logging.getLogger("smelt")
        log.handlers = [handler]
        log.setLevel(logging.INFO)
    return is_set


def _be_quiet(is_set: bool) -> bool:
    """Let ``note`` print nothing if ``--quiet`` is given. Return ``is_set``, as Typer requires."""
    quiet_mode.set(is_set)
    return is_set


def _in_color(when: When) -> When:
    """Set the colour mode to ``when`` and return ``when``.

    ``when`` may come from a settings file; a mode that the command line has set already stays.
    """
    if color.get() == "auto":
        color.set(when)
    return when


def _keep_weights(is_set: bool) -> bool:
    """Let reproducers keep the real weights if ``--with-weights`` is given. Return ``is_set``."""
    if is_set:
        from smelt.check.reproducer import real_weights

        real_weights.set(True)
    return is_set


def _leave_plugins_out(is_set: bool) -> bool:
    """Turn plug-ins off if ``--no-plugins`` is given. Return ``is_set``, as Typer requires."""
    if is_set:
        from smelt.extensions import plugins_off

        plugins_off.set(True)
    return is_set


Version = Annotated[
    bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", callback=_be_quiet, help="Print only results, warnings and errors."),
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", callback=_be_verbose, help="Report what was skipped, on standard error."
    ),
]
WithWeights = Annotated[
    bool,
    typer.Option(
        "--with-weights",
        callback=_keep_weights,
        help="Write the real weights into reproducers, not random ones.",
    ),
]
NoPlugins = Annotated[
    bool,
    typer.Option(
        "--no-plugins",
        callback=_leave_plugins_out,
        help="Ignore targets, passes and operators of other packages.",
    ),
]
NoConfig = Annotated[
    bool, typer.Option("--no-config", help="Read no smelt.toml and no pyproject.toml.")
]
Color = Annotated[
    When,
    typer.Option(
        "--color",
        callback=_in_color,
        metavar="auto|always|never",
        help="Colour the output. auto: on a terminal, unless NO_COLOR is set.",
    ),
]


def options(
    version: Version = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    with_weights: WithWeights = False,
    no_plugins: NoPlugins = False,
    no_config: NoConfig = False,
    colors: Color = "auto",
) -> None:
    """Options of smelt itself."""


def known_options() -> tuple[Option, ...]:
    """Return the options of smelt and of its commands that files and the environment may set."""
    return all_options(COMMANDS, options)
