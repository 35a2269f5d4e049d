"""Check the user's inputs of a run by name, and choose values for the others.

All mistakes are reported together, with the inputs of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError, did_you_mean
from smelt.ir.symbolic_dims.dims import size_of, symbols_of
from smelt.runtime.complex_arrays import as_pairs
from smelt.runtime.inputs import Mode, shape_at
from smelt.runtime.interface import Interface, Port, Value
from smelt.runtime.random_keys import key_data


@dataclass(frozen=True)
class MadeUp:
    """How to fill an input without a value: random numbers by ``seed``, zeros, or its default."""

    kind: Literal["random", "zeros", "default"] = "random"
    seed: int = 0

    def __str__(self) -> str:
        return f"random:{self.seed}" if self.kind == "random" else self.kind


Given = Mapping[str, "np.ndarray | MadeUp"]
"""The user's arrays by input name, or how to fill an input."""

Maker = Callable[[Mapping[str, int], int, Mode], list[Value]]
"""From sizes, a seed and a mode to random values of all inputs."""


@dataclass(frozen=True)
class Chosen:
    """The ``values`` of all inputs, the ``sizes`` of symbolic dims, and the inputs filled
    by smelt.
    """

    values: list[Value]
    sizes: dict[str, int]
    made_up: dict[str, MadeUp]


def choose_inputs(
    interface: Interface,
    given: Given,
    make: Maker | None,
    sizes: Mapping[str, int] | None = None,
    rest: MadeUp = MadeUp(),
) -> Chosen:
    """Return a value for each input: from ``given``, the model's defaults, or ``rest``.

    Symbolic dims get the sizes of given arrays, else of ``sizes``, else 1. Raises UsageError E632
    for all unknown names and misfitting arrays together, E633 for a dim that no input has.
    """
    arrays = {
        port.name: fitted(port, array)
        for port in interface.inputs
        if (array := _array(port.name, given.get(port.name))) is not None
    }
    _check_dims(interface, sizes or {})
    bound, clashes = _bind(interface, arrays, sizes or {})
    unknown = [name for name in given if name not in {port.name for port in interface.inputs}]
    problems = [f"there is no input {name!r}" for name in unknown] + clashes
    problems += [
        f"{port.name!r} must be {port}, not {type_text_of(arrays[port.name])}"
        for port in interface.inputs
        if port.name in arrays and not _fits(port, arrays[port.name], bound)
    ]
    if problems:
        raise _refusal(interface, problems, unknown, arrays)
    full = {**dict.fromkeys(interface.symbols(), 1), **bound}
    to_fill = {
        port.name: _made_up(port, given.get(port.name), rest)
        for port in interface.inputs
        if port.name not in arrays
    }
    filled = _make(interface, to_fill, make, full)
    values = [arrays.get(port.name, filled.get(port.name)) for port in interface.inputs]
    return Chosen(values, full, to_fill)


def _array(name: str, given: object) -> np.ndarray | None:
    """Return ``given`` (an array, number or list) as an array; None if there is no value."""
    if given is None or isinstance(given, MadeUp):
        return None
    try:
        return np.asarray(key_data(given))
    except ValueError as error:
        raise UsageError(
            "E632",
            f"the value of {name!r} is not an array",
            why=str(error),
            fix="give a NumPy array, or numbers in nested lists",
        ) from error


def type_text_of(array: np.ndarray) -> str:
    """Return the type of ``array`` as input types are written, such as ``float[2,3]``."""
    name = {"float32": "float", "float64": "double"}.get(str(array.dtype), str(array.dtype))
    return f"{'string' if array.dtype.kind in 'OUST' else name}[{','.join(map(str, array.shape))}]"


def input_types_text(interface: Interface) -> str:
    """Return the inputs of a model with their types, in one line."""
    return ", ".join(f"{port.name}: {port}" for port in interface.inputs) or "nothing"


def fitted(port: Port, array: np.ndarray) -> np.ndarray:
    """Return ``array`` in the form of ``port``: complex numbers as pairs, raw bytes as its dtype.

    NumPy writes element types that it lacks as raw bytes.
    """
    pairs = as_pairs(port, array)
    if pairs is not array:
        return pairs
    if array.dtype.kind != "V" or port.dtype is None or port.dtype == ir.DataType.STRING:
        return array
    dtype = port.dtype.numpy()
    return array.view(dtype) if dtype.itemsize == array.dtype.itemsize else array


def _made_up(port: Port, given: object, rest: MadeUp) -> MadeUp:
    """Return how to fill the input ``port``: as the user says, by its default, or by ``rest``."""
    if isinstance(given, MadeUp):
        return given
    return rest if port.default is None else MadeUp("default")


def _bind(
    interface: Interface, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int]
) -> tuple[dict[str, int], list[str]]:
    """Return the sizes of plain symbols from the given arrays, and sentences about conflicts."""
    bound, sources, clashes = dict(sizes), dict.fromkeys(sizes, "as bound"), []
    for port in interface.inputs:
        array = arrays.get(port.name)
        if array is None or port.shape is None or array.ndim != len(port.shape):
            continue
        for dim, size in zip(port.shape, array.shape, strict=True):
            if not isinstance(dim, ir.SymbolicDim) or symbols_of(dim) != {dim.value}:
                continue
            name = str(dim.value)
            if bound.setdefault(name, size) != size:
                clashes.append(
                    f"{name} is {bound[name]} {sources[name]}, but {size} in {port.name!r}"
                )
            sources.setdefault(name, f"in {port.name!r}")
    return bound, clashes


def _fits(port: Port, array: np.ndarray, sizes: Mapping[str, int]) -> bool:
    """True if ``array`` has the element type, rank and known sizes of ``port``."""
    if port.kind != "tensor":
        return False
    if port.dtype == ir.DataType.STRING:
        if array.dtype.kind not in "OUST":
            return False
    elif port.dtype is not None and array.dtype != port.dtype.numpy():
        return False
    if port.shape is None:
        return True
    if len(port.shape) != array.ndim:
        return False
    expected_sizes = [size_of(dim, sizes) for dim in port.shape]
    pairs = zip(port.shape, expected_sizes, array.shape, strict=True)
    return all(
        not isinstance(expected, int) or expected == size or _is_plain_symbol(dim)
        for dim, expected, size in pairs
    )


def _is_plain_symbol(dim: int | ir.SymbolicDim) -> bool:
    """True for a dim that is one symbol, whose conflicting sizes ``_bind`` reports."""
    return symbols_of(dim) == {getattr(dim, "value", "")}


def _refusal(
    interface: Interface,
    problems: Sequence[str],
    unknown: Sequence[str],
    arrays: Mapping[str, np.ndarray],
) -> UsageError:
    """Return error E632 with all ``problems`` and a fix for the first one."""
    fix = ""
    if unknown:
        fix = did_you_mean(
            unknown[0], [port.name for port in interface.inputs], "use a name of an input"
        )
    for port in interface.inputs:
        array = arrays.get(port.name)
        if fix or array is None or port.dtype in (None, ir.DataType.STRING):
            continue
        assert port.dtype is not None
        if array.dtype != port.dtype.numpy():
            fix = f"save it as array.astype({port.dtype.numpy().name!r})"
    return UsageError(
        "E632",
        "the inputs do not fit the model",
        at=problems,
        why=f"its inputs are {input_types_text(interface)}",
        fix=fix,
    )


def _check_dims(interface: Interface, sizes: Mapping[str, int]) -> None:
    """Raise UsageError E633 for a size of a dim that the interface does not have."""
    symbols = interface.symbols()
    for name in sizes:
        if name not in symbols:
            why = f"symbolic dims: {', '.join(symbols) or 'none'}"
            raise UsageError(
                "E633",
                f"there is no dim {name!r}",
                why=why,
                fix="`smelt inspect` shows the symbolic dims",
            )


def _make(
    interface: Interface,
    to_fill: Mapping[str, MadeUp],
    make: Maker | None,
    sizes: Mapping[str, int],
) -> dict[str, Value]:
    """Return values for the inputs ``to_fill``; inputs of one seed are drawn together."""
    filled: dict[str, Value] = {}
    for seed in {item.seed for item in to_fill.values() if item.kind == "random"}:
        if make is None:
            missing = ", ".join(to_fill)
            raise UsageError(
                "E632",
                f"there are no values for the inputs {missing}",
                why="smelt cannot draw random values for this model",
                fix="give arrays for them",
            )
        drawn = make(sizes, seed, "normal")
        pairs = zip(interface.inputs, drawn, strict=True)
        filled |= {p.name: v for p, v in pairs if to_fill.get(p.name) == MadeUp("random", seed)}
    for port in interface.inputs:
        kind = to_fill[port.name].kind if port.name in to_fill else None
        if kind == "zeros":
            filled[port.name] = _zeros(port, sizes)
        elif kind == "default" and port.default is not None:
            filled[port.name] = port.default.numpy()
    return filled


def _zeros(port: Port, sizes: Mapping[str, int]) -> np.ndarray:
    """Return zeros (empty texts for strings) for an input; raises UsageError E632."""
    if port.kind != "tensor" or port.dtype is None:
        raise UsageError(
            "E632",
            f"input {port.name!r} of type {port} cannot be zeros",
            why="only tensors of numbers, booleans and text can be zeros",
            fix=f"give a file: --input {port.name}=FILE.npz",
        )
    dtype = np.dtype(object) if port.dtype == ir.DataType.STRING else port.dtype.numpy()
    empty = np.zeros(shape_at(port, sizes), dtype)
    return np.full(empty.shape, "", object) if port.dtype == ir.DataType.STRING else empty
