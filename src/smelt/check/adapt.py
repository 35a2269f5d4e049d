"""Convert inputs and outputs of the source to the interface that passes have changed on request.

A pass may transpose, rename or cast an input or output if the user asks for it. Results stay
comparable if the source's values are converted in the same way. The movement of an output is how
far rounding moves each of its elements (``measure.py``); None for an output that is not an array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from smelt.ir.floats import is_float
from smelt.ir.interface_change import InterfaceChange, PortChange
from smelt.runtime.interface import Interface, Port, Value


def adapted_interface(interface: Interface, changes: Iterable[InterfaceChange]) -> Interface:
    """Return ``interface`` with each of ``changes`` applied."""
    sides = {"input": list(interface.inputs), "output": list(interface.outputs)}
    for change in changes:
        if isinstance(change, PortChange):
            ports = sides[change.side]
            ports[change.index] = _port(ports[change.index], change)
    return Interface(tuple(sides["input"]), tuple(sides["output"]))


def _port(port: Port, change: PortChange) -> Port:
    """Return ``port`` with ``change`` applied to its name, dtype, kind and shape."""
    if change.name is not None:
        port = replace(port, name=change.name)
    if change.dtype is not None:
        port = replace(port, dtype=change.dtype)
    if change.columns is not None:
        port = replace(port, kind="tensor", shape=None)
    if change.perm is not None and port.shape is not None:
        port = replace(port, shape=tuple(port.shape[axis] for axis in change.perm))
    return port


def adapted_inputs(values: Sequence[Value], changes: Iterable[InterfaceChange]) -> list[Value]:
    """Return ``values``, the inputs of the source, as inputs of the changed interface."""
    adapted = list(values)
    for change in changes:
        if not isinstance(change, PortChange) or change.side != "input":
            continue
        value = adapted[change.index]
        if change.perm:
            adapted[change.index] = _transposed(value, change.perm)
        if change.dtype is not None and isinstance(value, np.ndarray):
            adapted[change.index] = _converted(value, change.dtype.numpy(), change.step)
    return adapted


def adapted_outputs(
    outputs: Sequence[Value],
    movement: Sequence[np.ndarray | None],
    changes: Iterable[InterfaceChange],
    margin: float,
) -> tuple[list[Value], list[np.ndarray | None]]:
    """Return ``outputs`` and their ``movement`` for the changed interface.

    Outputs are transposed, converted from maps to rows, and cast, as ``changes`` require.
    Where ``margin`` times the movement could change a number that is cast to an integer or bool,
    the new movement is infinite, so any result is accepted.
    """
    values, moved = list(outputs), list(movement)
    for change in changes:
        if not isinstance(change, PortChange) or change.side != "output":
            continue
        i = change.index
        if change.perm is not None:
            values[i] = _transposed(values[i], change.perm)
            move = moved[i]
            moved[i] = move.transpose(change.perm) if move is not None else None
        if change.columns is not None:
            values[i] = _rows(values[i], change.columns)
        if change.dtype is not None:
            values[i], moved[i] = _cast(
                values[i], moved[i], change.dtype.numpy(), margin, change.step
            )
    return values, moved


def _converted(value: np.ndarray, dtype: np.dtype, step: tuple[float, int] | None) -> np.ndarray:
    """Return ``value`` cast to ``dtype``, or quantized; NaN becomes the lowest integer."""
    if step is None:
        return value.astype(dtype)
    scale, zero = step
    range_ = np.iinfo(dtype)
    steps = np.rint(np.where(np.isnan(value), -np.inf, value) / value.dtype.type(scale)) + zero
    clipped: np.ndarray = np.clip(steps, range_.min, range_.max)
    return clipped.astype(dtype)


def _transposed(value: Value, perm: tuple[int, ...]) -> Value:
    """Return a transposed array; values that are no arrays (sequences, maps) unchanged."""
    return value.transpose(perm) if isinstance(value, np.ndarray) else value


def _rows(value: Value, columns: tuple[int | str, ...]) -> Value:
    """Return a list of dictionaries as a float32 array with one row each, in the order of
    ``columns``.
    """
    dicts = value if isinstance(value, list) else ()
    rows = [[row[key] for key in columns] for row in dicts if isinstance(row, dict)]
    return np.array(rows, np.float32).reshape(len(rows), len(columns))


def _cast(
    value: Value,
    moved: np.ndarray | None,
    dtype: np.dtype,
    margin: float,
    step: tuple[float, int] | None = None,
) -> tuple[Value, np.ndarray | None]:
    """Return ``value`` cast to ``dtype``, and the movement of the result.

    ``moved`` is the movement of ``value``. A float keeps it. An integer or boolean has an infinite
    movement where ``moved`` times ``margin`` could change it, elsewhere 0.
    """
    if not isinstance(value, np.ndarray):
        return value, moved
    with np.errstate(all="ignore"):
        cast = _converted(value, dtype, step)
        if is_float(dtype) or moved is None or not is_float(value.dtype):
            return cast, moved
        as_double = value.astype(np.float64)
        ends = (as_double + sign * margin * moved for sign in (-1, 1))
        low, high = (_converted(end, dtype, step) for end in ends)
        unsure = (low != high) | ~np.isfinite(as_double)
    return cast, np.where(unsure, np.inf, 0.0)
