"""Find the settings files of the current folder and read their values.

The nearest folder upwards that has a ``smelt.toml``, or a ``pyproject.toml`` with a table
``tool.smelt``, is used; folders above it are not read. Nothing in a file is run or imported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smelt.cli.layout import printable
from smelt.cli.settings.options import PER_RUN, Option
from smelt.cli.settings.values import from_toml
from smelt.errors import UsageError, did_you_mean

OWN, SHARED = "smelt.toml", "pyproject.toml"
"""File names, in order of precedence."""


@dataclass(frozen=True)
class SettingsFile:
    """A settings file: its path and its table."""

    path: Path
    table: Mapping[str, Any]


def find_files() -> tuple[SettingsFile, ...]:
    """Return the settings files for the current folder, in order of precedence.

    Returns none in a deleted folder, and skips folders that may not be read. Raises UsageError E680
    for a file that cannot be read.
    """
    try:
        start = Path.cwd()
    except OSError:
        return ()
    for folder in (start, *start.parents):
        read = [_read(folder / name) for name in (OWN, SHARED)]
        files = [file for file in read if file is not None]
        if files:
            return tuple(files)
    return ()


def _read(path: Path) -> SettingsFile | None:
    """Return the settings in the file ``path``; None if it does not exist or has no settings.

    Raises UsageError E680 for a file that cannot be parsed.
    """
    try:
        if not path.is_file():
            return None
    except OSError:
        return None
    try:
        data = path.read_bytes()
        if path.name == SHARED and b"smelt" not in data:
            return None
        import tomllib

        table: Any = tomllib.loads(data.decode())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            "E680",
            f"cannot read {path.name}",
            at=str(path),
            fix="correct the file, or ignore settings files with --no-config",
            why=str(error),
        ) from error
    if path.name == OWN:
        return SettingsFile(path, table)
    tool = table.get("tool", {})
    if not isinstance(tool, dict) or "smelt" not in tool:
        return None
    if not isinstance(tool["smelt"], dict):
        raise UsageError(
            "E680",
            "tool.smelt is not a table",
            at=str(path),
            fix="write the settings below a line [tool.smelt]",
            why="settings are keys of a table",
        )
    return SettingsFile(path, tool["smelt"])


def settings_in(file: SettingsFile, options: Sequence[Option]) -> dict[str, tuple[Any, str]]:
    """Return ``{key: (value, place)}`` for each option that ``file`` sets.

    The table of a command takes precedence over keys for all commands. Raises UsageError E681 for
    an unknown key, E682 for a wrong value.
    """
    commands = {option.command for option in options if option.command}
    general: dict[str, tuple[Any, str]] = {}
    special: dict[str, tuple[Any, str]] = {}
    for key, value in file.table.items():
        if key in commands and isinstance(value, dict):
            options_of_command = [option for option in options if option.command == key]
            for name, item in value.items():
                special |= _set_options(
                    file, f"{key}.{name}", item, _options_named(name, options_of_command, file, key)
                )
        elif key in commands and not any(option.name == key for option in options):
            what = f"{key!r} is a command, and its settings are a table"
            raise UsageError(
                "E681",
                what,
                at=f"{file.path}: {key}",
                fix=f"{key} = {{NAME = VALUE}}",
                why=f"{key} is a command, and the settings of a command are a table",
            )
        else:
            general |= _set_options(file, key, value, _options_named(key, options, file))
    return general | special


def _options_named(
    name: str, options: Sequence[Option], file: SettingsFile, command: str = ""
) -> list[Option]:
    """Return the ``options`` called ``name``; raises UsageError E681 if there are none."""
    matching = [option for option in options if option.name == name]
    if matching:
        return matching
    known = {option.name for option in options}
    if not command:
        known |= {option.command for option in options if option.command}
    why, fix = "", did_you_mean(name, sorted(known), "`smelt config` lists the settings")
    if name in PER_RUN:
        why = (
            "options that name files to write, formats of output or commands to run work on the "
            "command line only"
        )
        fix = "remove it from the file"
    raise UsageError(
        "E681",
        f"there is no setting {name!r} of {command or 'smelt or its commands'}",
        at=_place_of_key(file, f"{command}.{name}" if command else name),
        why=why,
        fix=fix,
    )


def _place_of_key(file: SettingsFile, key: str) -> str:
    """Return the place of ``key`` for an error: the path of the file, and the key."""
    return f"{file.path}: {printable(key)}"


def _set_options(
    file: SettingsFile, key: str, value: Any, options: Sequence[Option]
) -> dict[str, tuple[Any, str]]:
    """Return ``{key: (value, place)}`` for ``options``, which are options of one name.

    A key without a command sets the option of every command that accepts ``value``; the others
    ignore it. Raises UsageError E682 if no command accepts the value.
    """
    place = _place_of_key(file, key)
    if options[0].name == "pipeline" and isinstance(value, str) and value.startswith("@"):
        value = f"@{file.path.parent / value[1:]}"
    values: dict[str, tuple[Any, str]] = {}
    errors: list[UsageError] = []
    # The error of the command with the most choices names all of them.
    for option in sorted(options, key=lambda option: -len(option.choices)):
        try:
            values[option.key] = from_toml(option, value, place), place
        except UsageError as error:
            errors.append(error)
    if not values:
        raise errors[0]
    return values
