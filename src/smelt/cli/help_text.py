"""The page that ``smelt COMMAND --help`` prints: two columns of plain text within 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any

from typer.core import TyperArgument, TyperOption

NAMES = {"int": "N", "int range": "N", "float": "NUMBER", "float range": "NUMBER"}
"""The name of a value by its type, for options that name it nowhere else."""


def paragraphs(function: Callable[..., None]) -> str:
    """Return the docstring of a command with one line per paragraph, so that the terminal wraps."""
    docstring = cleandoc(function.__doc__ or "")
    return "\n\n".join(" ".join(part.split()) for part in docstring.split("\n\n"))


def usage(params: Sequence[Any]) -> list[str]:
    """Return the words behind the name of the command: ``[OPTIONS]`` and its arguments."""
    arguments = [param.metavar or param.name for param in _params_of(params, TyperArgument)]
    return ["[OPTIONS]", *arguments]


def sections(context: Any, params: Sequence[Any]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the titles and rows of the page: the arguments, then the options."""
    arguments = [
        (param.metavar or param.name, param.help or "")
        for param in _params_of(params, TyperArgument)
    ]
    options = [
        (_spelling(context, option), _description(context, option))
        for option in _params_of(params, TyperOption)
        if not option.hidden
    ]
    return [(name, rows) for name, rows in (("Arguments", arguments), ("Options", options)) if rows]


def _params_of(params: Sequence[Any], kind: type) -> list[Any]:
    """Return the parameters of a command that are of the class ``kind``."""
    return [param for param in params if isinstance(param, kind)]


def _spelling(context: Any, option: TyperOption) -> str:
    """Return the names of ``option`` and its value, such as ``-o, --output FILE``."""
    names = ", ".join(sorted(option.opts, key=len))
    if option.is_flag:
        return names
    if option.metavar is not None:
        joint = "" if option.metavar.startswith("[=") else " "
        return f"{names}{joint}{option.metavar}"
    kind = option.display_type(context).strip("<>")
    return f"{names} {NAMES.get(kind, kind if '|' in kind else 'TEXT')}"


def _description(context: Any, option: TyperOption) -> str:
    """Return the help of ``option``, followed by its default or by ``[required]``."""
    if option.required:
        return f"{option.help}  [required]"
    default = option.get_default(context)
    if option.is_flag or default in (None, "", []):
        return option.help or ""
    shown = f"{default:g}" if isinstance(default, float) else default
    return f"{option.help}  [default: {shown}]"
