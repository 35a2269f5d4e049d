"""Read the options of every command from the signatures that define them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from typer.models import OptionInfo

PER_RUN = frozenset(
    (
        *("output", "report", "picture", "trace", "reduce"),
        *("json", "markdown", "snippet", "list", "dry-run", "timing"),
        *("print-changed", "print-after", "print-limit"),
        *("weights", "weight-name", "resume"),
        *("check", "ids", "ray", "no-config"),
    )
)
"""Options that only the command line may set.

They choose output files, run a command, or connect to another machine. A settings file may come
with somebody else's model, and must not decide that."""

SCALARS = (bool, int, float, str)
"""Types of options that a file gives as such; any other type is given as text."""


@dataclass(frozen=True)
class Option:
    """One option of ``command``; ``command`` is empty for options of smelt itself.

    ``name`` is the long spelling without dashes, ``parameter`` the name in the signature. ``kind``
    is the type of one value, ``many`` whether the option may be repeated, ``choices`` the allowed
    texts (empty: any). ``spellings`` are all forms such as ``-o`` and ``--output``.
    """

    command: str
    name: str
    parameter: str
    kind: type
    choices: tuple[str, ...]
    many: bool
    default: Any
    spellings: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name in files and in ``smelt config``, such as ``optimize.verify``."""
        return f"{self.command}.{self.name}" if self.command else self.name

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set the option, in order of precedence."""
        names = dict.fromkeys((f"{self.command}-{self.name}" if self.command else "", self.name))
        return tuple(f"SMELT_{name.upper().replace('-', '_')}" for name in names if name)


def options_of(command: str, function: Callable[..., Any]) -> tuple[Option, ...]:
    """Return the options of ``function`` that files and the environment may set, in order."""
    hints = get_type_hints(function, include_extras=True)
    options = []
    for parameter in inspect.signature(function).parameters.values():
        # A field of a group of options has its hint in the signature alone.
        option = _option(command, parameter, hints.get(parameter.name, parameter.annotation))
        if option is not None and option.name not in PER_RUN:
            options.append(option)
    return tuple(options)


def all_options(
    commands: Mapping[str, Callable[..., Any]], itself: Callable[..., Any]
) -> tuple[Option, ...]:
    """Return the options of smelt itself, which ``itself`` declares, then those of each command."""
    options = list(options_of("", itself))
    for name, function in commands.items():
        options += options_of(name, function)
    return tuple(options)


def _option(command: str, parameter: inspect.Parameter, hint: Any) -> Option | None:
    """Return ``parameter`` as an Option; None if its hint declares no typer option."""
    if get_origin(hint) is not Annotated:
        return None
    type_, *extras = get_args(hint)
    info = next((extra for extra in extras if isinstance(extra, OptionInfo)), None)
    if info is None or info.is_eager:
        return None
    # In an Annotated hint, typer stores the first spelling in the field ``default``.
    first_spelling = (info.default,) if isinstance(info.default, str) else ()
    from_parameter = f"--{parameter.name.replace('_', '-')}"
    further_spellings = info.param_decls or ()
    spellings = (*first_spelling, *further_spellings) or (from_parameter,)
    name = max((text for text in spellings if text.startswith("-")), key=len).lstrip("-")
    type_, many = _without_none(type_), False
    if get_origin(type_) is list:
        type_, many = get_args(type_)[0], True
    choices: tuple[str, ...] = ()
    if get_origin(type_) is Literal:
        choices = tuple(map(str, get_args(type_)))
    kind = type_ if type_ in SCALARS else str
    default = None if parameter.default is inspect.Parameter.empty else parameter.default
    return Option(command, name, parameter.name, kind, choices, many, default, spellings)


def _without_none(hint: Any) -> Any:
    """Return the one other type of an ``Optional`` hint; other hints unchanged."""
    if get_origin(hint) in (Union, UnionType):
        kept = [item for item in get_args(hint) if item is not NoneType]
        return kept[0] if len(kept) == 1 else hint
    return hint
