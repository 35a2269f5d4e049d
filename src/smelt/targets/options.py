"""Check the options of one compile against those that the target declares."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from smelt.errors import UsageError, did_you_mean
from smelt.targets.base import Target


def read_options(target: Target, given: Mapping[str, Any]) -> Any:
    """Return an instance of ``target.options`` with the ``given`` values; None if it declares none.

    Raises UsageError E660 for an unknown option or a value of another type.
    """
    kinds = get_type_hints(target.options) if target.options is not None else {}
    for name, value in given.items():
        if name not in kinds:
            raise _unknown_option(target, name, tuple(kinds))
        if not _is(value, kinds[name]):
            type_name = getattr(kinds[name], "__name__", str(kinds[name]))
            raise UsageError(
                "E660",
                f"{value!r} is not a value of the option {name} of target {target.name}",
                why=f"{name} is of type {type_name}",
                fix=f"`smelt explain {target.name}` lists the options with their types",
            )
    return None if target.options is None else target.options(**given)


def _unknown_option(target: Target, name: str, known: tuple[str, ...]) -> UsageError:
    """Return error E660 for an option that the target does not have."""
    return UsageError(
        "E660",
        f"target {target.name!r} has no option {name!r}",
        why=f"its options are {', '.join(known)}" if known else "it has none",
        fix=did_you_mean(name, known, "leave it out"),
    )


def _is(value: object, kind: Any) -> bool:
    """True if ``value`` has type ``kind``; an int passes as a float, a bool not as a number."""
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return any(_is_one(value, get_origin(item) or item) for item in kinds)


def _is_one(value: object, kind: Any) -> bool:
    """True if ``value`` is valid for an option of type ``kind``."""
    if isinstance(value, bool):
        return kind in (bool, object)
    return isinstance(value, int | float if kind is float else kind)
