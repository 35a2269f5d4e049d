"""The command-line program: the table of commands, options of smelt itself, and settings.

Each command has a file of its own; heavy packages are imported only when a command runs.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from smelt.cli.batch import batch
from smelt.cli.bench import bench
from smelt.cli.bisect import bisect
from smelt.cli.command import quiet as quiet_mode
from smelt.cli.command import report_error
from smelt.cli.compile import compile_
from smelt.cli.config import config
from smelt.cli.convert import convert
from smelt.cli.diff import diff
from smelt.cli.explain import explain
from smelt.cli.extract import extract
from smelt.cli.inspect import inspect
from smelt.cli.optimize import optimize
from smelt.cli.passes import passes
from smelt.cli.plugins import plugins
from smelt.cli.printing import WITHOUT_VALUE
from smelt.cli.reduce import reduce
from smelt.cli.run import run as run_command
from smelt.cli.settings.options import Option, all_options
from smelt.cli.settings.resolve import applied, as_arguments, defaults, read_settings
from smelt.cli.targets import targets
from smelt.cli.tune import tune
from smelt.cli.verify import verify
from smelt.distribution import neighbour_warning
from smelt.errors import SmeltError, UsageError

COMMANDS: Mapping[str, Callable[..., None]] = {
    "convert": convert,
    "optimize": optimize,
    "compile": compile_,
    "verify": verify,
    "extract": extract,
    "run": run_command,
    "bench": bench,
    "tune": tune,
    "inspect": inspect,
    "diff": diff,
    "bisect": bisect,
    "reduce": reduce,
    "batch": batch,
    "passes": passes,
    "targets": targets,
    "plugins": plugins,
    "explain": explain,
    "config": config,
}

ANYWHERE = ("--quiet", "--verbose", "--with-weights", "--no-plugins", "--no-config")
"""Options of smelt itself that are also accepted behind the command."""


_SPEC = re.compile(r"\w+\[[^\]]*\]")
"""The type of an input, such as f32[B,64]."""


class Command(TyperCommand):
    """A command that adds ``--no-NAME`` for each flag, because a file may set the flag."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser with an additional ``--no-NAME`` for each flag."""
        parser = super().make_parser(ctx)
        for flag in self.params:
            if isinstance(flag, TyperOption) and flag.is_bool_flag and not flag.is_eager:
                name = max(flag.opts, key=len).lstrip("-")
                parser.add_option(
                    flag, [f"--no-{name}"], dest=flag.name, action="store_const", const=False
                )
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse ``args``; if types of inputs are given as arguments, the error names
        ``--input``.
        """
        words = list(args)  # parsing uses up the list
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            specs = [word for word in words if _SPEC.fullmatch(word)]
            has_types = any("--input" in param.opts for param in self.params)
            if specs and has_types and "extra argument" in str(error):
                given = " ".join(f"--input {shlex.quote(spec)}" for spec in specs)
                ctx.fail(f"the types of inputs are options: {given}")
            raise


class CommandOverOthers(Command):
    """A command that stores the arguments behind ``--``, which another command gets, in
    ``ctx.obj``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments in front of ``--`` and store the others in ``ctx.obj``."""
        own, rest = parted(args)
        ctx.obj = rest[1:]
        return super().parse_args(ctx, own)


CLASSES = {"batch": CommandOverOthers}


def parted(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split ``arguments`` before ``--``."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at:]


class Commands(TyperGroup):
    """The group of commands; errors in arguments are printed as JSON with ``--json``."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that the arguments name, with defaults from files and the environment."""
        passed = options.get("args", args[0] if args else None)
        given = list(sys.argv[1:] if passed is None else passed)
        own, rest = parted(given)
        anywhere = [option for option in ANYWHERE if option in own]
        given = [*anywhere, *(_with_value(arg) for arg in own if arg not in ANYWHERE), *rest]
        as_json = "--json" in own
        options |= {"args": given, "standalone_mode": not as_json}
        try:
            options["default_map"] = defaults_for(given)
            status = super().main(**options)
        except SmeltError as error:
            report_error(error, as_json)
            status = int(error.status)
        except TyperException as error:
            refusal = UsageError("E643", error.format_message(), fix="`smelt COMMAND --help`")
            report_error(refusal, as_json=True)
            status = int(refusal.status)
        sys.exit(status or 0)


def defaults_for(given: Sequence[str]) -> dict[str, Any]:
    """Return the settings of files and the environment for the command, as click's default map.

    ``--help`` works even if the files are broken. For completion, ``config`` and ``explain``, a
    broken file turns plug-ins off, because it may have asked for that.
    """
    command = next((arg for arg in given if arg in COMMANDS), "")
    completing = "_SMELT_COMPLETE" in os.environ
    if not (command or completing) or {"-h", "--help"} & set(given):
        return {}
    try:
        settings = read_settings(known_options, given)
    except SmeltError:
        if completing or command in ("config", "explain"):
            return {"no_plugins": True}
        raise
    applied.set(as_arguments(settings, command, given))
    return defaults(settings, command)


def known_options() -> tuple[Option, ...]:
    """Return the options of smelt and of its commands that files and the environment may set."""
    return all_options(COMMANDS, options)


def _with_value(argument: str) -> str:
    """Return ``argument``, completed by its default value if it is an option with
    optional value.
    """
    value = WITHOUT_VALUE.get(argument)
    return argument if value is None else f"{argument}={value}"


def _paragraphs(function: Callable[..., None]) -> str:
    """Return the docstring of a command with one line a paragraph, so that the
    terminal wraps it.
    """
    told = cleandoc(function.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in told.split("\n\n"))


PLAIN = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
"""True if output must have no terminal escapes, such as colours and bold."""

app = typer.Typer(
    name="smelt",
    cls=Commands,
    rich_markup_mode=None if PLAIN else "rich",
    help="A retargetable tensor-graph compiler: JAX or ONNX in; ONNX, C or a program out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, function in COMMANDS.items():
    app.command(name, cls=CLASSES.get(name, Command), help=_paragraphs(function))(function)


def _version(wanted: bool) -> None:
    if wanted:
        from smelt import __version__

        print(f"smelt {__version__}")
        raise typer.Exit


def _be_verbose(wanted: bool) -> bool:
    if wanted:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("smelt: %(message)s"))
        log = logging.getLogger("smelt")
        log.handlers = [handler]
        log.setLevel(logging.INFO)
    return wanted


def _be_quiet(wanted: bool) -> bool:
    quiet_mode.set(wanted)
    return wanted


def _keep_weights(wanted: bool) -> bool:
    if wanted:
        from smelt.check.reproducer import real_weights

        real_weights.set(True)
    return wanted


def _leave_plugins_out(wanted: bool) -> bool:
    if wanted:
        from smelt.extensions import plugins_off

        plugins_off.set(True)
    return wanted


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", callback=_be_quiet, help="Print only results, warnings and errors."
        ),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", callback=_be_verbose, help="Report skipped items on stderr."),
    ] = False,
    with_weights: Annotated[
        bool,
        typer.Option(
            "--with-weights",
            callback=_keep_weights,
            help="Write the real weights into reproducers, not random ones.",
        ),
    ] = False,
    no_plugins: Annotated[
        bool,
        typer.Option(
            "--no-plugins",
            callback=_leave_plugins_out,
            help="Ignore targets, passes and operators of other packages.",
        ),
    ] = False,
    no_config: Annotated[
        bool, typer.Option("--no-config", help="Read no smelt.toml and no pyproject.toml.")
    ] = False,
) -> None:
    """Options of smelt itself."""


def _warn(message: Warning | str, *place: Any, **options: Any) -> None:
    """Print a warning on standard error without the source line that Python adds."""
    print(f"warning: {message}", file=sys.stderr)


def run() -> None:
    """Run the command line; the entry point of the console script."""
    warnings.showwarning = _warn
    if warning := neighbour_warning():
        print(f"warning: {warning}", file=sys.stderr)
    app(prog_name="smelt")
