"""The command-line program: the table of commands, options of smelt itself, and settings.

Each command has a file of its own; heavy packages are imported only when a command runs.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import warnings
from collections.abc import Sequence
from typing import Any, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from smelt.cli import help_text
from smelt.cli.batch import batch
from smelt.cli.bench import bench
from smelt.cli.bisect import bisect
from smelt.cli.command import report_error
from smelt.cli.compile import compile_
from smelt.cli.config import config
from smelt.cli.convert import convert
from smelt.cli.diff import diff
from smelt.cli.explain import explain
from smelt.cli.extract import extract
from smelt.cli.generate import generate
from smelt.cli.inspect import inspect
from smelt.cli.known_commands import ANYWHERE, COMMANDS
from smelt.cli.merge import merge
from smelt.cli.optimize import optimize
from smelt.cli.own_options import known_options, options
from smelt.cli.passes import passes
from smelt.cli.plugins import plugins
from smelt.cli.printing import WITHOUT_VALUE
from smelt.cli.quantize import quantize
from smelt.cli.reduce import reduce
from smelt.cli.run import run as run_command
from smelt.cli.settings.resolve import applied, as_arguments, defaults, read_settings
from smelt.cli.targets import targets
from smelt.cli.terminal import When, color
from smelt.cli.tune import tune
from smelt.cli.verify import verify
from smelt.distribution import neighbour_warning
from smelt.errors import SmeltError, UsageError

COMMANDS |= {
    "convert": convert,
    "optimize": optimize,
    "quantize": quantize,
    "compile": compile_,
    "verify": verify,
    "extract": extract,
    "merge": merge,
    "run": run_command,
    "generate": generate,
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

WIDEST = 28
"""The most columns of the names of options; a longer name has a line of its own."""

_SPEC = re.compile(r"\w+\[[^\]]*\]")
"""Matches the type of an input, such as f32[B,64]."""


class Command(TyperCommand):
    """A command that adds ``--no-NAME`` for each flag, because a file may set the flag."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line ``Usage:`` behind the name of the command."""
        return help_text.usage(self.params)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options with their descriptions."""
        for title, rows in help_text.sections(ctx, self.get_params(ctx)):
            with formatter.section(title):
                formatter.write_dl(rows, col_max=WIDEST)

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
        """Parse ``args``.

        If an argument too many is the type of an input, the error names the option ``--input``.
        """
        words = list(args)  # parsing uses up the list
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            specs = [word for word in words if _SPEC.fullmatch(word)]
            has_types = any("--input" in param.opts for param in self.params)
            if specs and has_types and "extra argument" in str(error):
                options = " ".join(f"--input {shlex.quote(spec)}" for spec in specs)
                ctx.fail(f"the types of inputs are options: {options}")
            raise


class CommandOverOthers(Command):
    """A command that passes the arguments behind ``--`` on, in ``ctx.obj``, to other commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments in front of ``--`` and store the others in ``ctx.obj``."""
        own, rest = split_at_dashes(args)
        ctx.obj = rest[1:]
        return super().parse_args(ctx, own)


CLASSES = {"batch": CommandOverOthers}
"""The classes of commands; a command that is not listed is a ``Command``."""


def split_at_dashes(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return ``arguments`` before ``--``, and those from ``--`` on."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at:]


class Commands(TyperGroup):
    """The group of commands; errors in arguments are printed as JSON with ``--json``."""

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command that the arguments name, with defaults from files and the environment."""
        passed = options.get("args", args[0] if args else None)
        arguments = list(sys.argv[1:] if passed is None else passed)
        own_arguments, rest = split_at_dashes(arguments)
        as_json = "--json" in own_arguments
        try:
            anywhere = [option for option in ANYWHERE if option in own_arguments]
            own_arguments = _apply_color([arg for arg in own_arguments if arg not in ANYWHERE])
            arguments = [*anywhere, *map(_with_value, own_arguments), *rest] or ["--help"]
            options |= {"args": arguments, "standalone_mode": False}
            options["default_map"] = defaults_for(arguments)
            status = super().main(**options)
        except SmeltError as error:
            report_error(error, as_json)
            status = int(error.status)
        except TyperException as error:
            refusal = _as_usage_error(error)
            report_error(refusal, as_json)
            status = int(refusal.status)
        sys.exit(status or 0)


def defaults_for(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the settings of files and the environment for the command, as click's default map.

    ``--help`` reads no settings, so that it works even if a file is broken. Completion, ``config``
    and ``explain`` must work then, too; they turn plug-ins off, as the broken file may do so.
    """
    command = next((arg for arg in arguments if arg in COMMANDS), "")
    completing = "_SMELT_COMPLETE" in os.environ
    if not (command or completing) or {"-h", "--help"} & set(arguments):
        return {}
    try:
        settings = read_settings(known_options, arguments)
    except SmeltError:
        if completing or command in ("config", "explain"):
            return {"no_plugins": True}
        raise
    applied.set(as_arguments(settings, command, arguments))
    return defaults(settings, command)


def _with_value(argument: str) -> str:
    """Return ``argument``, with ``=all`` added if it is ``--print-changed`` or ``--print-after``.

    The parser does not know options with an optional value.
    """
    value = WITHOUT_VALUE.get(argument)
    return argument if value is None else f"{argument}={value}"


def _apply_color(arguments: list[str]) -> list[str]:
    """Set the colour mode that ``--color WHEN`` gives, and return the other arguments.

    This happens before the arguments are parsed, because the option may follow the command, and
    because it also applies to errors in the arguments. Raises UsageError E643 for an unknown WHEN.
    """
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name != "--color":
            others.append(word)
            continue
        when = value if equals else next(words, "")
        if when not in get_args(When):
            raise UsageError(
                "E643",
                f"{when!r} is not a value of --color",
                why=f"the values are {', '.join(get_args(When))}",
                fix="--color never",
            )
        color.set(cast(When, when))
    return others


def _as_usage_error(error: TyperException) -> UsageError:
    """Return an error of the argument parser as UsageError E643, in the form of all errors."""
    message, _, suggested = error.format_message().partition(" Did you mean ")
    message, _, possible_options = message.partition(" (Possible options: ")
    suggestion = suggested.rstrip("?.") or possible_options.rstrip(")")
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "smelt"
    usage = context.command.get_usage(context) if context is not None else ""
    return UsageError(
        "E643",
        message[:1].lower() + message[1:].rstrip("."),
        why=" ".join(usage.split()).replace("Usage: ", "the form is: "),
        fix=f"did you mean {suggestion}?" if suggestion else f"`{path} --help` lists all options",
    )


app = typer.Typer(
    name="smelt",
    cls=Commands,
    rich_markup_mode=None,
    help="A retargetable tensor-graph compiler: JAX or ONNX in; ONNX, C or a program out.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, function in COMMANDS.items():
    app.command(name, cls=CLASSES.get(name, Command), help=help_text.paragraphs(function))(function)

app.callback()(options)


def _warn(message: Warning | str, *place: Any, **options: Any) -> None:
    """Print a warning on standard error without the source line that Python adds."""
    print(f"warning: {message}", file=sys.stderr)


def run() -> None:
    """Run the command line; the entry point of the console script."""
    warnings.showwarning = _warn
    if warning := neighbour_warning():
        print(f"warning: {warning}", file=sys.stderr)
    app(prog_name="smelt")
