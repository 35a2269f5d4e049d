"""Check the inputs of a run against the interface of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.runtime.interface import Interface, Port, Value
from smelt.runtime.random_keys import key_data

Run = Callable[..., Sequence[Value]]


def feed(interface: Interface, inputs: Sequence[Value]) -> dict[str, Value]:
    """Return ``inputs`` by name after checking them, with defaults for inputs that are None.

    Raises UsageError E632 for a wrong count, element type, rank or size, E670 for sizes that the
    model does not take.
    """
    expected = len(interface.inputs)
    if len(inputs) != expected:
        raise UsageError(
            "E632",
            f"the model has {expected} inputs, but the call has {len(inputs)}",
            fix=f"give an array for each of {', '.join(port.name for port in interface.inputs)}",
            why="inputs are given in order, one array each",
        )
    values_by_name: dict[str, Value] = {}
    for port, argument in zip(interface.inputs, inputs, strict=True):
        value = argument
        if value is None:
            if not _may_be_left_out(port):
                what = f"there is no value for input {port.name!r}"
                raise UsageError(
                    "E632",
                    what,
                    fix=f"give an array for {port.name!r}",
                    why="the input has no default value",
                )
            values_by_name[port.name] = port.default.numpy() if port.default is not None else None
            continue
        if not isinstance(value, list | dict):
            value = np.asarray(key_data(value))
            _check(port, value)
        values_by_name[port.name] = value
    if interface.check is not None:
        arrays = (
            value if isinstance(value, np.ndarray) else np.empty(())
            for value in values_by_name.values()
        )
        interface.check(tuple(array.shape for array in arrays))
    return values_by_name


def with_optional_inputs(interface: Interface, run: Run) -> Run:
    """Wrap ``run`` so that callers may omit optional inputs: all of them, or the last ones.

    ``run`` receives None for an omitted input with a default or of optional type. Returns ``run``
    itself if no input may be omitted.
    """
    ports = interface.inputs
    required = [i for i, port in enumerate(ports) if not _may_be_left_out(port)]
    if len(required) == len(ports):
        return run
    first = required[-1] + 1 if required else 0

    def on_some(*inputs: Value) -> Sequence[Value]:
        """Run with None for omitted inputs: all that may be omitted, or the last ones."""
        if len(inputs) == len(required):
            filled: list[Value] = [None] * len(ports)
            for i, value in zip(required, inputs, strict=True):
                filled[i] = value
            return run(*filled)
        if first <= len(inputs) < len(ports):
            return run(*inputs, *[None] * (len(ports) - len(inputs)))
        return run(*inputs)

    return on_some


def _may_be_left_out(port: Port) -> bool:
    """True if the input has a default or is optional."""
    return port.default is not None or port.kind == "optional"


def _check(port: Port, array: np.ndarray) -> None:
    """Raise UsageError E632 unless ``array`` has the element type, rank and sizes of ``port``."""
    fix = ""
    if port.dtype is not None and port.kind == "tensor":
        text = port.dtype == ir.DataType.STRING
        if (array.dtype.kind not in "OUST") if text else (array.dtype != port.dtype.numpy()):
            fix = f"give array.astype({'object' if text else repr(port.dtype.numpy().name)})"
    if not fix and port.shape is not None and port.kind == "tensor":
        fix = _wrong_shape(port.shape, array.shape)
    if fix:
        actual_type = f"{array.dtype}[{','.join(map(str, array.shape))}]"
        what = f"input {port.name!r} must be {port}, not {actual_type}"
        raise UsageError("E632", what, fix=fix, why="the model declares this type and shape")


def _wrong_shape(expected: Sequence[int | ir.SymbolicDim], actual: Sequence[int]) -> str:
    """Return which dim of the ``actual`` shape to change; empty if it fits ``expected``."""
    if len(expected) != len(actual):
        return f"give an array of {len(expected)} dims, not of {len(actual)}"
    for axis, (dim, size) in enumerate(zip(expected, actual, strict=True)):
        if isinstance(dim, int) and dim != size:
            return f"give dim {axis} the size {dim}, not {size}"
    return ""
