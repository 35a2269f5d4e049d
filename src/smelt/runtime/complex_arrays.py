"""Convert complex arrays to the pairs of real numbers that models use for them, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from smelt.runtime.interface import Interface, Port, Value


def as_pairs(port: Port, array: np.ndarray) -> np.ndarray:
    """Return a complex array for ``port`` with real and imaginary parts in a new last dim.

    Other arrays are returned unchanged.
    """
    if port.complex is None or array.dtype != port.complex.numpy():
        return array
    real: np.ndarray = array[..., None].view(array.real.dtype)
    return real


def as_complex(port: Port, pairs: np.ndarray) -> np.ndarray:
    """Return the complex array for a tensor of pairs from ``port``; others unchanged.

    The result is a view if the two parts of a number are adjacent in memory.
    """
    if port.complex is None or pairs.dtype.kind == "c":
        return pairs
    if pairs.strides[-1] != pairs.itemsize:
        pairs = np.ascontiguousarray(pairs)
    result: np.ndarray = pairs.view(port.complex.numpy())[..., 0]
    return result


def all_as_pairs(ports: Sequence[Port], values: Sequence[Value]) -> list[Value]:
    """Apply ``as_pairs`` to each value; values beyond the ports stay unchanged."""
    return _each(as_pairs, ports, values)


def all_as_complex(ports: Sequence[Port], values: Sequence[Value]) -> list[Value]:
    """Apply ``as_complex`` to each value; values beyond the ports stay unchanged."""
    return _each(as_complex, ports, values)


def _each(
    convert: Callable[[Port, np.ndarray], np.ndarray],
    ports: Sequence[Port],
    values: Sequence[Value],
) -> list[Value]:
    """Return ``values`` with ``convert`` applied to each value of a complex port."""

    def converted(port: Port, value: Value) -> Value:
        """Return ``value``, converted if its port is complex."""
        if port.complex is None or value is None:
            return value
        return convert(port, np.asarray(value))  # also accepts arrays of JAX

    converted_values = [converted(*pair) for pair in zip(ports, values, strict=False)]
    return [*converted_values, *values[len(ports) :]]


def arrays_as_pairs(
    interface: Interface, arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return ``arrays``, keyed by input name, with complex ones as pairs."""
    ports = {port.name: port for port in interface.inputs}
    return {
        name: as_pairs(ports[name], array) if name in ports else array
        for name, array in arrays.items()
    }


def on_complex(
    interface: Interface, run: Callable[..., Sequence[Value]]
) -> Callable[..., list[Value]]:
    """Wrap ``run``, a function of complex arrays, as a function of pairs."""

    def on_pairs(*inputs: Value) -> list[Value]:
        """Return the results of ``run`` as pairs."""
        results = run(*all_as_complex(interface.inputs, inputs))
        return all_as_pairs(interface.outputs, results)

    return on_pairs


def on_pairs(
    interface: Interface, run: Callable[..., Sequence[Value]]
) -> Callable[..., Sequence[Value]]:
    """Wrap ``run``, a function of pairs, as a function of complex arrays.

    The result also accepts pairs. Returns ``run`` itself if no port is complex.
    """
    if all(port.complex is None for port in (*interface.inputs, *interface.outputs)):
        return run

    def on_complex(*inputs: Value) -> list[Value]:
        """Return the results of ``run`` as complex arrays."""
        results = run(*all_as_pairs(interface.inputs, inputs))
        return all_as_complex(interface.outputs, results)

    return on_complex
