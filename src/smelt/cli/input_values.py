"""Parse ``--input`` and ``--inputs``: array files, generated inputs, types of functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smelt.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from smelt.runtime.interface import Interface
    from smelt.runtime.named_inputs import MadeUp

InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]VALUE",
        help="An input: a file (.npy, .npz, .pb), random, random:SEED or zeros. For a function, "
        "also a type such as f32[2,4]. Repeatable.",
    ),
]


def _files(text: str) -> Any:
    """Return the option ``--inputs`` with ``text`` as its help, which differs between commands."""
    return typer.Option("--inputs", metavar="FILE", help=f"{text} Repeatable.")


InputFiles = Annotated[list[str] | None, _files("A .npz or .pb file with several inputs by name.")]
Samples = Annotated[
    list[str] | None,
    _files(
        "Compare on the inputs in this .npz or .pb file, by name. If the arrays have one more axis "
        "in front, it counts samples."
    ),
]


def check_samples(samples: list[str] | None, verify: str, *, measures: bool = False) -> None:
    """Raise UsageError E637 for ``--inputs`` of a command that does not run the model.

    A model runs if ``verify`` is not ``off``, or if the command ``measures`` an error itself.
    """
    if samples and verify == "off" and not measures:
        raise UsageError(
            "E637",
            "--inputs is given without --verify",
            why="the arrays in it are only used to compare the result with the source",
            fix="add --verify final",
        )


_SPEC = re.compile(r"\s*\w+\s*\[.*\]\s*", re.DOTALL)
_RANDOM = re.compile(r"random(?::(\d{1,18}))?")
_NAMED = re.compile(r"([^=]+)=(.+)", re.DOTALL)


@dataclass
class InputValues:
    """The inputs that the command line gives.

    Arrays and generated inputs are ``named`` or ``ordered``. ``specs`` are types of arguments of a
    function: those in order, and those by name.
    """

    named: dict[str, np.ndarray | MadeUp] = field(default_factory=dict)
    ordered: list[np.ndarray | MadeUp] = field(default_factory=list)
    specs: tuple[list[str], dict[str, str]] = field(default_factory=lambda: ([], {}))

    def by_name(self, interface: Interface) -> Mapping[str, np.ndarray | MadeUp]:
        """Return all inputs by the names of ``interface``.

        Raises UsageError E632 for too many inputs, E636 for one given by name and by position.
        """
        from smelt.runtime.named_inputs import input_types_text

        names = [port.name for port in interface.inputs]
        if len(self.ordered) > len(names):
            what = f"{len(self.ordered)} inputs are given, the model takes {len(names)}"
            raise UsageError(
                "E632",
                what,
                why=f"it takes {input_types_text(interface)}",
                fix="leave out the last --input options",
            )
        placed = dict(zip(names, self.ordered, strict=False))
        for name in placed.keys() & self.named.keys():
            raise UsageError(
                "E636",
                f"input {name!r} is given by name and by position",
                why="an --input without a name is the next input in order",
                fix=f"give all inputs by name: --input {name}=FILE",
            )
        return {**placed, **self.named}

    def arguments(self, function: Callable[..., Any], name: str) -> list[Any]:
        """Return the arrays in the order of the parameters of ``function``, called ``name``.

        The function has no types of inputs, so an input cannot be generated. Raises UsageError E632
        for generated inputs, or if the arrays do not fit the signature.
        """
        from smelt.runtime.named_inputs import MadeUp

        if any(isinstance(item, MadeUp) for item in (*self.ordered, *self.named.values())):
            raise UsageError(
                "E632",
                f"no inputs can be made up for {name}",
                fix="--input 'f32[2,3]' for each argument, or files",
                why="the function does not declare the types of its arguments",
            )
        try:
            bound = inspect.signature(function).bind(*self.ordered, **self.named)
        except TypeError as error:
            raise UsageError(
                "E632", f"the inputs do not fit {name}", why=str(error), fix="--input x=x.npy"
            ) from error
        except ValueError:  # a builtin without a signature
            return list(self.ordered)
        return [*bound.args, *bound.kwargs.values()]


def read_samples(files: Sequence[str] | None) -> list[dict[str, np.ndarray]] | None:
    """Return the samples in ``files``, each a dict of arrays by input name; None without files.

    A .npz file is one sample. A .pb file holds one input, so all .pb files make one sample. Raises
    UsageError E617 for files that cannot be read, E636 for arrays without a name.
    """
    from smelt.runtime.array_files import read_arrays

    if not files:
        return None
    arrays_by_file = {file: read_arrays(file) for file in files}
    unnamed = [file for file, arrays in arrays_by_file.items() if "" in arrays]
    if unnamed:
        raise UsageError(
            "E636",
            f"the array in {unnamed[0]!r} has no name",
            fix="save it by name: np.savez('data.npz', x=x)",
            why="inputs in a file are matched to those of the model by name",
        )
    tensors = [arrays for file, arrays in arrays_by_file.items() if file.endswith(".pb")]
    samples = [arrays for file, arrays in arrays_by_file.items() if not file.endswith(".pb")]
    one_sample: dict[str, np.ndarray] = {
        name: array for arrays in tensors for name, array in arrays.items()
    }
    return [*samples, one_sample] if one_sample else samples


def read_inputs(
    items: Sequence[str] | None, files: Sequence[str] | None, *, function: bool
) -> InputValues:
    """Parse the values of --input and --inputs; types are accepted for a ``function`` only.

    Raises UsageError E636 for a repeated name or text of unknown form, E617 for bad files.
    """
    from smelt.runtime.array_files import read_arrays

    values = InputValues()
    for file in files or ():
        arrays = read_arrays(file)
        if "" in arrays:
            fix = f"--input NAME={file}"
            raise UsageError(
                "E636",
                f"the array in {file!r} has no name",
                fix=fix,
                why="inputs in a file are matched to those of the model by name",
            )
        for name, array in arrays.items():
            _add(values, name, array)
    for item in items or ():
        _read(values, item, function)
    return values


def _read(values: InputValues, item: str, function: bool) -> None:
    """Parse one ``[NAME=]VALUE`` and add it to ``values``; a type is accepted if ``function``."""
    named = _NAMED.fullmatch(item)
    name, text = named.groups() if named and not Path(item).exists() else ("", item)
    if function and _SPEC.fullmatch(text) and not Path(text).exists():
        if not name:
            values.specs[0].append(text)
        elif name in values.specs[1]:
            raise UsageError(
                "E636",
                f"--input {name} is given twice",
                why="an argument has one type",
                fix="leave one of them out",
            )
        else:
            values.specs[1][name] = text
        return
    value = _value(name, text, item)
    if name:
        _add(values, name, value)
    else:
        values.ordered.append(value)


def _value(name: str, text: str, item: str) -> np.ndarray | MadeUp:
    """Return the array in the file ``text``, or the generated input that ``text`` names.

    Raises UsageError E636 for text of unknown form, or if a file holds no array ``name``.
    """
    from smelt.runtime.array_files import SUFFIXES, read_arrays
    from smelt.runtime.named_inputs import MadeUp

    random = _RANDOM.fullmatch(text)
    if random:
        return MadeUp("random", int(random.group(1) or 0))
    if text == "zeros":
        return MadeUp("zeros")
    if Path(text).suffix not in SUFFIXES:
        raise UsageError(
            "E636",
            f"--input {item!r} is not [NAME=]VALUE",
            why=f"{text!r} is not a .npy, .npz or .pb file, and not random, random:SEED or zeros",
            fix="for instance: --input x=x.npy",
        )
    arrays = read_arrays(text)
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise UsageError(
        "E636",
        f"{text!r} has no array {name!r}" if name else f"{text!r} holds several arrays",
        why=f"it has {', '.join(map(repr, arrays)) or 'none'}",
        fix=f"use one of these names, or take all arrays by name: --inputs {text}",
    )


def _add(values: InputValues, name: str, value: np.ndarray | MadeUp) -> None:
    """Record the value of input ``name``; raises UsageError E636 if it has one already."""
    if name in values.named:
        raise UsageError(
            "E636",
            f"input {name!r} is given twice",
            why="an input has one value",
            fix="leave one of them out",
        )
    values.named[name] = value
