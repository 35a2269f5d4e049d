"""Options that control how a JAX function is traced, and their parsers."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.errors import UsageError

if TYPE_CHECKING:
    from smelt.check.user_function import Call

Input = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]TYPE",
        help="The type of an argument, such as 'f32[B,28,28,1]', in the order of the arguments."
        " NAME=TYPE for a keyword argument. Repeatable.",
    ),
]
InputNames = Annotated[
    list[str] | None,
    typer.Option(
        "--input-name",
        metavar="[OLD=]NAME",
        help="Name an input: all of them in order, or OLD=NAME for one. Repeatable.",
    ),
]
OutputNames = Annotated[
    list[str] | None,
    typer.Option(
        "--output-name",
        metavar="[OLD=]NAME",
        help="Name an output: all of them in order, or OLD=NAME for one. Repeatable.",
    ),
]
InputParams = Annotated[
    list[str] | None,
    typer.Option(
        "--input-param",
        metavar="PATTERN",
        help="Make the parameters that match PATTERN inputs of the model. Repeatable.",
    ),
]
ChannelsFirst = Annotated[
    list[str] | None,
    typer.Option(
        "--channels-first",
        metavar="NAME",
        help="An input or output in NHWC layout that becomes NCHW in the model. Repeatable.",
    ),
]
Constraints = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint",
        metavar="TEXT",
        help="A fact about symbolic dims, such as 'S % 8 == 0'. Repeatable.",
    ),
]

_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)\s*=(.*)", re.DOTALL)
_WORDS = {"true": True, "false": False, "none": None}
"""Spellings of values that Python writes with a capital letter."""

_UNCLEAR = frozenset({"yes", "no", "on", "off", "y", "n", "t", "f", "maybe", "null", "nil"})
"""Words that may mean true or false; they are refused."""


@dataclass(frozen=True)
class Calling:
    """The options that say how a function is called; ``command`` makes each field an option."""

    static: Annotated[
        list[str] | None,
        typer.Option(
            "--static",
            metavar="NAME=VALUE",
            help="The value of a function's argument that is not an input. Repeatable.",
        ),
    ] = None
    x64: Annotated[
        bool,
        typer.Option(
            "--x64", help="Run and trace functions with 64-bit types, as JAX_ENABLE_X64=1."
        ),
    ] = False

    def call(self, positional: Sequence[str], keyword: Mapping[str, str]) -> Call:
        """Return the call with inputs of these types; raises UsageError E636."""
        from smelt.check.user_function import Call

        return Call(positional, keyword, parse_static(self.static), self.x64 or None)

    def typed(self, specs: Sequence[str] | None) -> Call:
        """Return the call with the types that ``--input`` gives; raises UsageError E636."""
        return self.call(*parse_inputs(specs))


def parse_inputs(items: Sequence[str] | None) -> tuple[list[str], dict[str, str]]:
    """Split types of inputs into positional and keyword ones.

    Raises UsageError E636 for a repeated keyword.
    """
    positional: list[str] = []
    keyword: dict[str, str] = {}
    for item in items or ():
        match = _KEYWORD.fullmatch(item)
        if match is None:
            positional.append(item)
            continue
        name, spec = match.groups()
        if name in keyword:
            raise UsageError(
                "E636",
                f"--input {name} is given twice",
                why="an argument has one type",
                fix="leave one of them out",
            )
        keyword[name] = spec
    return positional, keyword


def parse_static(items: Sequence[str] | None) -> dict[str, Any]:
    """Return ``NAME=VALUE`` items with values parsed as Python literals, else as text.

    Raises UsageError E636. Words such as "yes" or "off", which Python does not read as true or
    false, are refused unless they are in quotes.
    """
    values: dict[str, Any] = {}
    for item in items or ():
        name, equals, text = item.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(
                "E636",
                f"--static {item!r} is not NAME=VALUE",
                fix="for instance: --static train=false",
                why="a static argument is given by its name",
            )
        if name in values:
            raise UsageError(
                "E636",
                f"--static {name} is given twice",
                why="an argument has one value",
                fix="leave one of them out",
            )
        values[name] = _value(name, text)
    return values


def _value(name: str, text: str) -> Any:
    """Parse one static value; raises UsageError E636 for a word that may mean true or false."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text.lower() in _UNCLEAR:
        raise UsageError(
            "E636",
            f"--static {name}={text} is neither true nor false",
            fix=f"""write {name}=true or {name}=false, and text in quotes: '{name}="{text}"'""",
            why="Python reads it as text, and any text counts as true",
        )
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def parse_names(items: Sequence[str] | None, option: str) -> list[str] | dict[str, str] | None:
    """Return a list of names, or a mapping of old to new names.

    Raises UsageError E636 for a mixture.
    """
    if not items:
        return None
    pairs = [item.partition("=") for item in items]
    renaming = [bool(equals) for _, equals, _ in pairs]
    if not any(renaming):
        return list(items)
    if not all(renaming):
        what = f"{option} is given as NAME and as OLD=NAME"
        raise UsageError(
            "E636",
            what,
            fix="write every name without OLD=, in order, or every name as OLD=NAME",
            why="names without OLD= stand for all inputs or outputs in order",
        )
    if len({old for old, _, _ in pairs}) < len(pairs):
        raise UsageError(
            "E636",
            f"{option} gives two new names for one old name",
            why="a value has one name",
            fix="leave one of them out",
        )
    return {old: new for old, _, new in pairs}
