"""Options that several commands have, and the conversion of errors to exit statuses.

People read standard error, programs read standard output. A SmeltError is printed and sets the exit
status. Any other exception is a fault of smelt, and a reproducer is written for it.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

import typer

from smelt.cli import completion
from smelt.cli.terminal import painted_error
from smelt.errors import (
    ErrorList,
    ExitStatus,
    InternalError,
    ResourceLimit,
    SmeltError,
    UsageError,
    not_installed,
)
from smelt.ir.out_of_memory import is_out_of_memory

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="An ONNX file, or - for standard input.")
]
Output = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="FILE", help="The file to write, or - for standard output."
    ),
]
Verify = Annotated[
    Literal["off", "final", "each"],
    typer.Option(
        "--verify",
        help="Compare the numbers of the result with those of the source: at the end (final), or"
        " after each pass as well (each).",
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="The seed of the random inputs.")]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document on standard output, also for errors."),
]
Dim = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="The size of a symbolic dim. Repeatable."),
]
TrialDims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE[,SIZE]",
        help="Sizes of a symbolic dim to compare at. Repeatable.",
    ),
]
CompiledDims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE|LOW..HIGH",
        help="Fix a symbolic dim at one size, or bound it. Repeatable.",
    ),
]
OptimizedDims = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        metavar="NAME=SIZE[,SIZE]",
        help="Fix a symbolic dim at one size. Several sizes are only for --verify. Repeatable.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        metavar="TARGET",
        help="The target; `smelt targets` lists all.",
        autocompletion=completion.targets,
    ),
]

R = TypeVar("R")

EXTRAS = {"jax": "jax", "onnxruntime": "ort", "scipy": "host", "scipy_openblas32": "host"}
"""Optional package to the extra of smelt that installs it."""


def command(function: Callable[..., R]) -> Callable[..., R]:
    """Wrap a command: print its errors and exit with their statuses.

    A parameter whose type is a dataclass becomes one option for each field, so that commands can
    share groups of options; the function receives the dataclass.
    """
    hints: dict[str, Any] = get_type_hints(function)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> R:
        """Run the command; every error is printed and becomes an exit status."""
        as_json = bool(kwargs.get("as_json"))
        for name, group in groups.items():
            kwargs[name] = group(**{f.name: kwargs.pop(f.name) for f in fields(group)})
        try:
            result = function(*args, **kwargs)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # The reader closed the pipe; discard what Python still has to flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(int(ExitStatus.DONE)) from None
        except KeyboardInterrupt:
            print(f"\nstopped by Ctrl-C: {_left_behind(kwargs)}", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if isinstance(error, typer.Exit) or type(error).__module__.startswith("typer."):
                raise
            explained = _as_smelt_error(error)
            report_error(explained, as_json)
            raise typer.Exit(int(explained.status)) from None

    if groups:
        guarded.__signature__ = _flat_signature(function, groups)  # type: ignore[attr-defined]
    return guarded


INTERRUPTED = 130
"""The exit status of a command that Ctrl-C stopped, as shells give it."""

partial_results: ContextVar[str] = ContextVar("smelt.partial_results", default="")
"""What a command would leave behind if it were stopped now, in words.

Empty for a command that writes files only at its end."""


def _left_behind(arguments: Mapping[str, Any]) -> str:
    """Return in words what a command with these arguments leaves behind when Ctrl-C stops it."""
    output = arguments.get("output")
    if partial_results.get():
        return partial_results.get()
    return f"{output} is unchanged" if output else "nothing was written"


def _flat_signature(function: Callable[..., Any], groups: Mapping[str, Any]) -> inspect.Signature:
    """Return the signature of ``function`` with each group replaced by its fields."""
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.name not in groups:
            parameters.append(parameter)
            continue
        hints = get_type_hints(groups[parameter.name], include_extras=True)
        for field in fields(groups[parameter.name]):
            hint = hints[field.name]
            parameters.append(
                parameter.replace(name=field.name, default=field.default, annotation=hint)
            )
    return inspect.Signature(parameters)


def _as_smelt_error(error: Exception) -> SmeltError:
    """Return ``error`` as a SmeltError.

    Out of memory becomes E512, an OSError E639, a missing optional package E631, any other E901.
    """
    if isinstance(error, SmeltError):
        return error
    if is_out_of_memory(error) or isinstance(error, RecursionError | MemoryError):
        what = "the model needs more memory or is nested deeper than this process allows"
        return ResourceLimit(
            "E512",
            what,
            why=f"Python raised {type(error).__name__}",
            fix="use a machine with more memory, or a smaller model (smelt extract)",
        )
    if isinstance(error, OSError):
        return UsageError(
            "E639",
            f"cannot use {error.filename!r}" if error.filename else "cannot read or write a file",
            why=error.strerror or str(error),
            fix="check that the path exists and that you may read and write it",
        )
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return not_installed(error.name, EXTRAS[error.name], "this command")
    return _unexpected(error)


def report_error(error: SmeltError, as_json: bool) -> None:
    """Print ``error`` as text on standard error, or as a JSON document on standard output."""
    if as_json:
        print_json({"schema": "smelt.error/1", "error": error.to_json()})
        return
    errors = error.errors if isinstance(error, ErrorList) else (error,)
    codes = dict.fromkeys(one.code for one in errors)
    text = "\n".join([str(error), *(f"  see   smelt explain {code}" for code in codes)])
    print(painted_error(text, sys.stderr), file=sys.stderr)


def _unexpected(error: Exception) -> SmeltError:
    """Write a reproducer for ``error`` and return it as InternalError E901."""
    from smelt.cli.replay import reproducer_of
    from smelt.cli.settings.resolve import applied

    try:
        folder = reproducer_of([*sys.argv[1:], *applied.get()], error)
        fix = f"please report it with the reproducer in {folder}"
    except (MemoryError, OSError, SmeltError) as failure:
        fix = f"please report it; no reproducer could be written: {failure}"
    return InternalError(
        "E901",
        f"an unexpected {type(error).__name__}: {error}",
        fix=fix,
    )


def print_json(document: object) -> None:
    """Print ``document`` on standard output; NaN and infinity, which JSON lacks, become text."""
    print(json.dumps(_without_nan_and_inf(document), indent=2, allow_nan=False))


def _without_nan_and_inf(item: object) -> object:
    """Return ``item`` with NaN and infinity, at any depth, replaced by their text."""
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if isinstance(item, dict):
        return {key: _without_nan_and_inf(value) for key, value in item.items()}
    return (
        [_without_nan_and_inf(value) for value in item] if isinstance(item, list | tuple) else item
    )


quiet: ContextVar[bool] = ContextVar("smelt.quiet", default=False)
"""Whether ``note`` prints nothing (``--quiet``)."""


def note(text: str) -> None:
    """Print ``text`` for people on standard error, unless ``--quiet`` is given."""
    if not quiet.get():
        print(text, file=sys.stderr)
