"""``smelt config [COMMAND]``: print every setting, its value, and where the value comes from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.cli import completion
from smelt.cli.command import Json, command, note, print_json
from smelt.cli.layout import printable, table
from smelt.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from smelt.cli.settings.resolve import Setting


CommandName = Annotated[
    str | None,
    typer.Argument(
        metavar="[COMMAND]",
        help="Show only the settings of this command.",
        autocompletion=completion.commands,
    ),
]


@command
def config(
    context: typer.Context,
    of: CommandName = None,
    as_json: Json = False,
) -> None:
    """Show all settings and where their values come from.

    A setting is an option that smelt.toml, pyproject.toml or a variable SMELT_* can set.

    Example: smelt config optimize
    """
    from smelt.cli.known_commands import COMMANDS
    from smelt.cli.own_options import known_options
    from smelt.cli.settings.files import find_files
    from smelt.cli.settings.resolve import files_wanted, resolve, unknown_variables

    if of is not None and of not in COMMANDS:
        fix = did_you_mean(of, COMMANDS, "`smelt --help` lists the commands")
        raise UsageError(
            "E643",
            f"there is no command {of!r}",
            fix=fix,
            why="the argument is the name of a command, such as optimize",
        )
    no_config = ("--no-config",) if context.find_root().params.get("no_config") else ()
    files = find_files() if files_wanted(no_config) else ()
    options = known_options()
    settings = resolve(options, files, os.environ)
    shown = [item for item in settings if of is None or item.option.command == of]
    unknown = unknown_variables(options, os.environ)
    if as_json:
        paths = [str(file.path) for file in files]
        facts = [describe(item) for item in shown]
        document = {"files": paths, "settings": facts, "unknown_variables": list(unknown)}
        print_json({"schema": "smelt.config/1", **document})
        return
    print(table(_rows(shown), ("setting", "value", "from")))
    for name, similar in unknown.items():
        if not similar:  # every command already warns about likely misspellings
            note(f"{name} is no setting of smelt")


def describe(setting: Setting) -> dict[str, Any]:
    """Return a setting as plain data; ``command`` is empty for options of smelt itself."""
    return {
        "command": setting.option.command,
        "name": setting.option.name,
        "value": setting.value,
        "from": setting.source,
        "place": setting.place,
    }


def _rows(settings: Sequence[Setting]) -> list[tuple[str, str, str]]:
    """Return a row of the table for each setting: its key, its value, and where that is set."""
    return [
        (item.option.key, _in_words(item.value), item.place or item.source) for item in settings
    ]


def _in_words(value: Any) -> str:
    """Return ``value`` as text for the table: ``-`` for none, ``true`` or ``false``, or a list."""
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return printable(" ".join(map(str, value)) if isinstance(value, list) else value)
