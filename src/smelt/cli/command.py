"""What every command shares: its options, and what becomes of an error.

People read standard error, programs read standard output. An error that smelt can explain is
printed and becomes the exit status; any other is ours, and leaves a reproducer behind.
"""

from __future__ import annotations

import functools
import json
import math
import os
import sys
from collections.abc import Callable
from typing import Annotated, ParamSpec, TypeVar

import typer

from smelt.cli import completion
from smelt.errors import ExitStatus, SmeltError
from smelt.ir.out_of_memory import is_out_of_memory

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE[,SIZE]", help="Sizes of a symbolic dim; repeatable."),
]
BoundDims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE[,SIZE]",
        help="With one size, bind a symbolic dim to it in the result; several are only verified at."
        " Repeatable.",
    ),
]
Pipeline = Annotated[
    str,
    typer.Option(
        "--pipeline",
        metavar="TEXT|@FILE",
        help="The passes to run, or a file of them.",
        autocompletion=completion.pipelines,
    ),
]
Target = Annotated[
    str,
    typer.Option(help="A name that `smelt targets` lists.", autocompletion=completion.targets),
]

P = ParamSpec("P")
R = TypeVar("R")

EXTRAS = {"jax": "jax", "onnxruntime": "ort", "scipy": "host", "scipy_openblas32": "host"}
"""Optional packages, and the extra of smelt that installs each."""


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors of a command into messages and exit statuses."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        as_json = bool(kwargs.get("as_json"))
        try:
            result = function(*args, **kwargs)
            sys.stdout.flush()
            return result
        except SmeltError as error:
            report_error(error, as_json)
            raise typer.Exit(int(error.status)) from None
        except BrokenPipeError:
            # The reader has seen enough; what Python still wants to flush goes nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(int(ExitStatus.DONE)) from None
        except OSError as error:
            if is_out_of_memory(error):
                raise _out_of_memory(error, as_json) from None
            from smelt.errors import UsageError

            place = f"{error.filename!r}: " if error.filename else ""
            refusal = UsageError("E639", f"{place}{error.strerror or error}")
            report_error(refusal, as_json)
            raise typer.Exit(int(refusal.status)) from None
        except ModuleNotFoundError as error:
            if error.name not in EXTRAS:
                report_error(_unexpected(error), as_json)
                raise typer.Exit(int(ExitStatus.INTERNAL)) from None
            from smelt.errors import not_installed

            missing = not_installed(error.name, EXTRAS[error.name], "this")
            report_error(missing, as_json)
            raise typer.Exit(int(missing.status)) from None
        except (RecursionError, MemoryError) as error:
            raise _out_of_memory(error, as_json) from None
        except Exception as error:
            if is_out_of_memory(error):
                raise _out_of_memory(error, as_json) from None
            if isinstance(error, typer.Exit) or type(error).__module__.startswith("typer."):
                raise
            report_error(_unexpected(error), as_json)
            raise typer.Exit(int(ExitStatus.INTERNAL)) from None

    return guarded


def report_error(error: SmeltError, as_json: bool) -> None:
    """Print ``error``: text on standard error, or a JSON document on standard output."""
    if as_json:
        print_json({"error": error.to_json()})
    else:
        print(error, file=sys.stderr)


def _out_of_memory(error: Exception, as_json: bool) -> typer.Exit:
    from smelt.errors import ResourceLimit

    what = "the model needs more memory or is nested deeper than this process allows"
    report_error(ResourceLimit("E512", what, why=type(error).__name__), as_json)
    return typer.Exit(int(ExitStatus.RESOURCE_LIMIT))


def _unexpected(error: Exception) -> SmeltError:
    from smelt.cli.replay import reproducer_of
    from smelt.cli.settings.resolve import applied
    from smelt.errors import InternalError

    try:
        folder = reproducer_of([*sys.argv[1:], *applied.get()], error)
        fix = f"please report it with the reproducer in {folder}"
    except (MemoryError, OSError, SmeltError) as failure:
        fix = f"please report it; no reproducer could be written: {failure}"
    return InternalError(
        "E901",
        f"an unexpected {type(error).__name__}: {error}",
        why="this is a mistake of smelt, not of yours",
        fix=fix,
    )


def print_json(document: object) -> None:
    """Print ``document`` on standard output; numbers that JSON lacks become text, as ``"inf"``."""
    print(json.dumps(_finite(document), indent=2, allow_nan=False))


def _finite(item: object) -> object:
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if isinstance(item, dict):
        return {key: _finite(value) for key, value in item.items()}
    return [_finite(value) for value in item] if isinstance(item, list | tuple) else item


def note(text: str) -> None:
    """Tell a person something; programs do not read it."""
    print(text, file=sys.stderr)
