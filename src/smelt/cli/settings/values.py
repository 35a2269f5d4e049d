"""Convert TOML values and text to the type of an option."""

from __future__ import annotations

import shlex
from typing import Any

from smelt.cli.settings.options import Option
from smelt.errors import UsageError, did_you_mean

TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")

TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def from_toml(option: Option, value: Any, place: str) -> Any:
    """Return the TOML ``value`` in the type of ``option``; raises UsageError E682 with ``place``.

    A repeatable option takes an array, or a table: ``{B = 1}`` is ``B=1``.
    """
    if not option.many:
        return _typed(option, value, place)
    if isinstance(value, dict):
        return [f"{name}={_text(option, item, place)}" for name, item in value.items()]
    if not isinstance(value, list):
        raise _wrong_value(option, value, place)
    return [_typed(option, item, place) for item in value]


def from_text(option: Option, text: str, place: str) -> Any:
    """Return the text of an environment variable in the type of ``option``; raises UsageError E682.

    Values of a repeatable option are separated by spaces and quoted as in a shell.
    """
    if not option.many:
        return _parsed(option, text, place)
    try:
        items = shlex.split(text)
    except ValueError as error:
        raise _wrong_value(option, text, place) from error
    return [_parsed(option, item, place) for item in items]


def truth(text: str) -> bool | None:
    """Return True or False for words such as "yes" and "0"; None for any other text."""
    word = text.strip().lower()
    if word in TRUE:
        return True
    return False if word in FALSE else None


def _parsed(option: Option, text: str, place: str) -> Any:
    """Return ``text`` in the type of ``option``; raises UsageError E682 naming ``place``."""
    if option.kind is bool:
        value = truth(text)
        if value is None:
            raise _wrong_value(option, text, place)
        return value
    if option.kind in (int, float):
        try:
            return option.kind(text)
        except ValueError as error:
            raise _wrong_value(option, text, place) from error
    return _typed(option, text, place)


def _typed(option: Option, value: Any, place: str) -> Any:
    """Return ``value``, an integer as a float where ``option`` is a float.

    Raises UsageError E682 for a value of another type or one that is not a choice.
    """
    if option.kind is float and type(value) is int:
        return float(value)
    if type(value) is not option.kind or (option.choices and value not in option.choices):
        raise _wrong_value(option, value, place)
    return value


def _text(option: Option, item: Any, place: str) -> str:
    """Return ``item``, a value in a TOML table, as in ``NAME=VALUE``; lists join with commas."""
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, int | float | str):
        return str(item)
    if isinstance(item, list):
        return ",".join(_text(option, element, place) for element in item)
    raise _wrong_value(option, item, place)


def _wrong_value(option: Option, value: Any, place: str) -> UsageError:
    """Return error E682 for ``value``, with the values that ``option`` allows."""
    allowed = " or ".join(option.choices) or TYPES.get(option.kind, "text")
    if option.many:
        allowed = f"an array of values, each {allowed}, or a table NAME = VALUE"
    otherwise = '["NAME=VALUE"], or leave it out' if option.many else "leave it out, or correct it"
    fix = did_you_mean(str(value), option.choices, otherwise)
    return UsageError(
        "E682",
        f"{value!r} is not a value of {option.name!r}",
        at=place,
        why=f"a value is {allowed}",
        fix=fix,
    )
