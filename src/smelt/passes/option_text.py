"""The text of one option of a pass, such as ``true`` in ``reduce-transposes{deep=true}``."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from smelt.errors import UsageError


def parse_value(owner: str, key: str, value: str, kind: Any) -> Any:
    """Convert the text of one option to the type ``kind`` of its field; raises UsageError E603."""
    kinds = [k for k in get_args(kind) if k is not type(None)]
    if kinds and get_origin(kind) is not tuple:
        kind = kinds[0]
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        if get_origin(kind) is tuple:
            return tuple(get_args(kind)[0](item) for item in value.split(",") if item)
        return kind(value)
    except (KeyError, ValueError, TypeError) as error:
        name = getattr(kind, "__name__", str(kind))
        raise bad_option(owner, key, f"{value!r} is not a value of the type {name}") from error


def print_value(value: object) -> str:
    """Return the text from which ``parse_value`` reads ``value`` back."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return str(value)


def bad_option(owner: str, key: str, why: str) -> UsageError:
    """Return error E603 for the option ``key`` of the pass ``owner``."""
    return UsageError(
        "E603",
        f"{owner} cannot take the option {key!r}",
        why=why,
        fix="`smelt explain PASS` lists the options of a pass",
    )
