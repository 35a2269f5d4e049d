"""Choose the value of each option that the command line omits, and record where it comes from."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from smelt.cli.settings.files import SettingsFile, find_files, settings_in
from smelt.cli.settings.options import Option
from smelt.cli.settings.values import from_text, truth
from smelt.errors import UsageError
from smelt.runtime.jit.variables import CACHE, ENGINE

PREFIX = "SMELT_"
NO_CONFIG = "SMELT_NO_CONFIG"
NEARLY = 0.85
"""Similarity to a known variable from which an unknown ``SMELT_*`` counts as misspelled."""

applied: ContextVar[tuple[str, ...]] = ContextVar("smelt.applied", default=())
"""The settings of the running command as arguments, for reproducers."""


@dataclass(frozen=True)
class Setting:
    """The value of ``option`` and where it comes from.

    ``source`` is ``environment``, ``smelt.toml``, ``pyproject.toml`` or ``default``; ``place`` is
    the variable, or the file and the key in it; empty for a default.
    """

    option: Option
    value: Any
    source: str
    place: str = ""

    @property
    def is_default(self) -> bool:
        """True if neither the environment nor a file sets the option."""
        return self.source == "default"


def files_wanted(arguments: Sequence[str]) -> bool:
    """False if ``--no-config`` or ``SMELT_NO_CONFIG`` turns settings files off; raises E682."""
    text = os.environ.get(NO_CONFIG, "")
    without = truth(text) if text else False
    if without is None:
        what = f"{text!r} is not a value of 'no-config'"
        raise UsageError(
            "E682",
            what,
            at=NO_CONFIG,
            why=f"{NO_CONFIG} is true or false",
            fix="SMELT_NO_CONFIG=1, or unset it",
        )
    return not without and "--no-config" not in arguments


def resolve(
    options: Sequence[Option], files: Sequence[SettingsFile], variables: Mapping[str, str]
) -> tuple[Setting, ...]:
    """Return a Setting for each option, in order: the environment wins, then the first file.

    Raises UsageError E681 or E682 for wrong keys or values in files or variables.
    """
    layers = [(file.path.name, settings_in(file, options)) for file in files]
    layers.insert(0, ("environment", _from_variables(options, variables)))
    return tuple(_setting_of(option, layers) for option in options)


def _setting_of(
    option: Option, layers: Sequence[tuple[str, Mapping[str, tuple[Any, str]]]]
) -> Setting:
    """Return the Setting of ``option`` from the first of ``layers`` that sets it, else its
    default."""
    for source, values in layers:
        if option.key in values:
            value, place = values[option.key]
            return Setting(option, value, source, place)
    return Setting(option, option.default, "default")


def _from_variables(
    options: Sequence[Option], variables: Mapping[str, str]
) -> dict[str, tuple[Any, str]]:
    """Return ``{key: (value, variable)}`` for each option that the environment sets.

    A variable without a command sets the option of every command that accepts the value. Raises
    UsageError E682 for a value that no command accepts.
    """
    values: dict[str, tuple[Any, str]] = {}
    errors: dict[str, UsageError] = {}
    used: set[str] = set()
    for option in sorted(options, key=lambda option: -len(option.choices)):
        name = next((name for name in option.variables if variables.get(name)), "")
        if not name:
            continue
        try:
            values[option.key] = from_text(option, variables[name], name), name
            used.add(name)
        except UsageError as error:
            errors.setdefault(name, error)
    for name, refusal in errors.items():
        # A variable for all commands may have another type in some of them.
        if name not in used:
            raise refusal
    return values


def unknown_variables(options: Sequence[Option], variables: Mapping[str, str]) -> dict[str, str]:
    """Return each ``SMELT_*`` variable that sets nothing, with the most similar known one or ""."""
    known = sorted(
        {name for option in options for name in option.variables} | {NO_CONFIG, CACHE, ENGINE}
    )
    return {
        name: next(iter(difflib.get_close_matches(name, known, 1, cutoff=NEARLY)), "")
        for name in sorted(variables)
        if name.startswith(PREFIX) and name not in known
    }


def defaults(settings: Sequence[Setting], command: str) -> dict[str, Any]:
    """Return click's default map for ``command``, with the settings that are no defaults.

    Options of smelt itself are keys of the map; those of the command are keys of a map in it.
    """
    chosen = [setting for setting in settings if not setting.is_default]
    default_map: dict[str, Any] = {
        s.option.parameter: s.value for s in chosen if not s.option.command
    }
    default_map[command] = {
        s.option.parameter: s.value for s in chosen if s.option.command == command
    }
    return default_map


def as_arguments(
    settings: Sequence[Setting], command: str, overriding: Sequence[str]
) -> tuple[str, ...]:
    """Return the settings of ``command`` as arguments such as ``--verify=final``.

    Options that are among the arguments ``overriding`` are left out.
    """
    spelled = {argument.partition("=")[0] for argument in overriding}
    arguments: list[str] = []
    for setting in settings:
        option = setting.option
        flags = {*option.spellings, f"--no-{option.name}"}
        if setting.is_default or option.command != command or flags & spelled:
            continue
        values = setting.value if option.many else [setting.value]
        for value in values:
            if value is True:
                arguments.append(f"--{option.name}")
            elif value is not False:
                arguments.append(f"--{option.name}={value}")
    return tuple(arguments)


def read_settings(
    options: Callable[[], Sequence[Option]], arguments: Sequence[str]
) -> tuple[Setting, ...]:
    """Return the settings for this process, and warn of variables that may be misspelled.

    ``options`` is called only if a file or variable exists, so that the start stays fast.
    """
    files = find_files() if files_wanted(arguments) else ()
    if not files and not any(name.startswith(PREFIX) for name in os.environ):
        return ()
    known = options()
    for name, meant in unknown_variables(known, os.environ).items():
        if meant:
            warnings.warn(f"{name} is no setting of smelt; is it {meant}?", stacklevel=1)
    return resolve(known, files, os.environ)
