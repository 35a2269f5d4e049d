"""Read command-line arguments: models, functions, sizes of dims and options."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smelt.errors import SmeltError, UsageError, not_installed

if TYPE_CHECKING:
    import onnx_ir as ir

STANDARD = "-"
"""The path that means standard input or standard output."""

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_NAME = re.compile(r"[^\s=,]+")


def is_function(source: str) -> bool:
    """True if ``source`` names a Python object, such as ``pkg.mod:fn``, and is no file."""
    return _FUNCTION.fullmatch(source) is not None and not Path(source).exists()


def read_model(
    source: str, *, opset: int | None = None, as_is: bool = False, keep_opset: bool = False
) -> ir.Model:
    """Load the model from the file ``source``, or from standard input for ``-``.

    ``as_is`` keeps the opset and the functions of the file; commands that only inspect use it.
    ``keep_opset`` keeps the opset, for commands that raise it in a step of their own.
    """
    from smelt.frontends.onnx import load

    data: str | bytes = sys.stdin.buffer.read() if source == STANDARD else source
    return load(data, opset=opset, as_is=as_is, keep_opset=keep_opset)


def write_model(model: ir.Model, destination: str, **options: Any) -> None:
    """Write ``model`` to a file, or to standard output for ``-``.

    ``options`` are those of ``save``; of ``write``, for standard output.
    """
    from smelt.frontends.onnx import save, write

    if destination == STANDARD:
        write(model, sys.stdout.buffer, **options)
        sys.stdout.buffer.flush()
    else:
        save(model, destination, **options)


def one_document(as_json: bool, destination: str | None) -> None:
    """Raise UsageError E637 if both the model and ``--json`` go to standard output."""
    if as_json and destination == STANDARD:
        raise UsageError(
            "E637",
            "the model and the JSON document of --json both go to standard output",
            why="a reader could not tell one from the other",
            fix="write the model to a file: -o FILE",
        )


def find_function(reference: str) -> Callable[..., Any]:
    """Import and return the callable that ``pkg.mod:fn`` names; the current folder is on the path.

    Raises UsageError E635 if there is no such callable.
    """
    module_name, _, path = reference.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        named_object: Any = importlib.import_module(module_name)
        for part in path.split("."):
            named_object = getattr(named_object, part)
    except SmeltError:
        raise
    except ModuleNotFoundError as error:
        if error.name in ("jax", "jaxlib"):
            raise not_installed("jax", "jax", f"importing {reference!r}") from error
        raise _not_imported(reference, error) from error
    except Exception as error:
        raise _not_imported(reference, error) from error
    if not callable(named_object):
        kind = type(named_object).__name__
        raise UsageError(
            "E635",
            f"{reference!r} is not a function",
            why=f"it is of type {kind}, which cannot be called",
            fix="name a function as package.module:function",
        )
    return named_object  # type: ignore[no-any-return]


def opened_source(source: str) -> Any:
    """Return what ``source`` names: a function, the bytes of standard input for ``-``, or the
    path."""
    if is_function(source):
        return find_function(source)
    return sys.stdin.buffer.read() if source == STANDARD else source


def _not_imported(reference: str, error: Exception) -> UsageError:
    """Return error E635 for ``reference``, whose import raised ``error``, with a fix that fits."""
    file, _, function = reference.partition(":")
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    if package and package != file.partition(".")[0] and not file.endswith(".py"):
        return UsageError(
            "E635",
            f"cannot import {reference!r}",
            fix=f"pip install {package}",
            why=f"it imports the package {package}, which is not installed",
        )
    if not function and not file.endswith(".py") and isinstance(error, ModuleNotFoundError):
        return UsageError(
            "E635",
            f"there is no file and no Python module {reference!r}",
            fix="check the path, or name a function as package.module:function",
            why="a model is a path; a function is written package.module:function",
        )
    fix = "name a function as package.module:function, importable from this folder"
    if file.endswith(".py"):
        module = ".".join(Path(file).with_suffix("").parts)
        fix = f"name the module, not its file: {module}:{function or 'FUNCTION'}"
    return UsageError(
        "E635",
        f"cannot import {reference!r}: {type(error).__name__}: {error}",
        fix=fix,
        why="Python raises this error when it imports the module of the function",
    )


_BOUNDS = re.compile(r"(\d{1,18})\.\.(\d{1,18})")


def parse_dims(items: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Return ``["B=1,3", "S=8"]`` as ``{"B": (1, 3), "S": (8,)}``; raises UsageError E636."""
    dims: dict[str, tuple[int, ...]] = {}
    for item in items or ():
        name, _, sizes = item.partition("=")
        numbers = sizes.split(",")
        if not _NAME.fullmatch(name) or not all(number.strip().isdecimal() for number in numbers):
            raise UsageError(
                "E636",
                f"--dim {item!r} is not NAME=SIZE[,SIZE]",
                fix="for instance: --dim B=1,3",
                why="sizes are whole numbers, separated by commas",
            )
        if name in dims:
            raise UsageError(
                "E636",
                f"--dim {name} is given twice",
                fix=f"--dim {name}=1,3",
                why="several sizes of one dim go into one option",
            )
        dims[name] = tuple(int(number) for number in numbers)
    return dims


def bounded_dims(items: Sequence[str] | None) -> dict[str, int | tuple[int, int]]:
    """Return ``["B=1..16", "S=8"]`` as ``{"B": (1, 16), "S": 8}``: bounds or one size by name.

    Raises UsageError E636 for a name that is given twice or for text of another form.
    """
    bounds: dict[str, int | tuple[int, int]] = {}
    single: list[str] = []
    for item in items or ():
        name, _, sizes = item.partition("=")
        ends = _BOUNDS.fullmatch(sizes)
        if ends is None or not _NAME.fullmatch(name):
            single.append(item)
            continue
        if name in bounds:
            raise UsageError(
                "E636",
                f"--dim {name} is given twice",
                fix="leave one of them out",
                why="one dim has one size, or one pair of bounds",
            )
        bounds[name] = (int(ends[1]), int(ends[2]))
    fixed = bind_dims(single)
    twice = [name for name in fixed if name in bounds]
    if twice:
        raise UsageError(
            "E636",
            f"--dim {twice[0]} is given twice",
            fix="leave one of them out",
            why="one dim has one size, or one pair of bounds",
        )
    return bounds | fixed


def split_dims(
    items: Sequence[str] | None,
) -> tuple[dict[str, int], dict[str, tuple[int, ...]] | None]:
    """Return ``(bound, dims)``: the dims with exactly one size, and all sizes to verify at.

    ``dims`` is None if ``items`` is empty.
    """
    dims = parse_dims(items)
    bound = {name: sizes[0] for name, sizes in dims.items() if len(sizes) == 1}
    return bound, dims or None


def bind_dims(items: Sequence[str] | None) -> dict[str, int]:
    """Return ``["B=1"]`` as ``{"B": 1}``; raises UsageError E636 for a name with several sizes."""
    dims = parse_dims(items)
    for name, sizes in dims.items():
        if len(sizes) != 1:
            raise UsageError(
                "E636",
                f"--dim {name} has several sizes",
                fix=f"--dim {name}={sizes[0]}",
                why="this command runs at one size of each dim",
            )
    return {name: sizes[0] for name, sizes in dims.items()}


def parse_options(items: Sequence[str] | None) -> Mapping[str, Any]:
    """Return ``["align=64", "static"]`` as ``{"align": 64, "static": True}``; raises E636."""
    options: dict[str, Any] = {}
    for item in items or ():
        name, equals, text = item.partition("=")
        if not name.replace("-", "_").isidentifier():
            raise UsageError(
                "E636",
                f"--option {item!r} is not NAME=VALUE",
                why="an option of a target has a name and a value; a flag has only a name",
                fix="for instance: --option name=my_model",
            )
        options[name.replace("-", "_")] = _value(text) if equals else True
    return options


def _value(text: str) -> int | float | bool | str:
    """Return ``text`` as a bool, an int, a float, or else as text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
