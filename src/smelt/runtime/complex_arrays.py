"""Complex arrays as the pairs of real numbers that models take and give for them, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from smelt.runtime.interface import Interface, Port, Value


def as_pairs(port: Port, array: np.ndarray) -> np.ndarray:
    """A complex array for ``port`` with its parts in a dim more; any other one as it is."""
    if port.complex is None or array.dtype != port.complex.numpy():
        return array
    real: np.ndarray = array[..., None].view(array.real.dtype)
    return real


def as_complex(port: Port, pairs: np.ndarray) -> np.ndarray:
    """The complex array that a tensor of pairs from ``port`` stands for; others as they are.

    It is a view wherever the two parts of a number are neighbours.
    """
    if port.complex is None or pairs.dtype.kind == "c":
        return pairs
    if pairs.strides[-1] != pairs.itemsize:
        pairs = np.ascontiguousarray(pairs)
    result: np.ndarray = pairs.view(port.complex.numpy())[..., 0]
    return result


def all_as_pairs(ports: Sequence[Port], values: Sequence[Value]) -> list[Value]:
    """``as_pairs`` of each; those that are too many stay as they are."""
    return _each(as_pairs, ports, values)


def all_as_complex(ports: Sequence[Port], values: Sequence[Value]) -> list[Value]:
    """``as_complex`` of each; those that are too many stay as they are."""
    return _each(as_complex, ports, values)


def _each(
    convert: Callable[[Port, np.ndarray], np.ndarray],
    ports: Sequence[Port],
    values: Sequence[Value],
) -> list[Value]:
    def converted(port: Port, value: Value) -> Value:
        if port.complex is None or value is None:
            return value
        return convert(port, np.asarray(value))  # arrays of JAX, too

    known = [converted(*pair) for pair in zip(ports, values, strict=False)]
    return [*known, *values[len(ports) :]]


def arrays_as_pairs(
    interface: Interface, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """``arrays``, by name of the input, with the complex ones as pairs."""
    ports = {port.name: port for port in interface.inputs}
    return {
        name: as_pairs(ports[name], array) if name in ports else array
        for name, array in arrays.items()
    }


def on_complex(
    interface: Interface, run: Callable[..., Sequence[Value]]
) -> Callable[..., list[Value]]:
    """``run``, which takes and gives complex arrays, as what takes and gives pairs."""

    def on_pairs(*inputs: Value) -> list[Value]:
        results = run(*all_as_complex(interface.inputs, inputs))
        return all_as_pairs(interface.outputs, results)

    return on_pairs


def on_pairs(
    interface: Interface, run: Callable[..., Sequence[Value]]
) -> Callable[..., Sequence[Value]]:
    """``run``, which takes and gives pairs, as what takes and gives complex arrays.

    Pairs are taken, too. Where nothing is complex, it is ``run`` itself.
    """
    if all(port.complex is None for port in (*interface.inputs, *interface.outputs)):
        return run

    def on_complex(*inputs: Value) -> list[Value]:
        results = run(*all_as_pairs(interface.inputs, inputs))
        return all_as_complex(interface.outputs, results)

    return on_complex
