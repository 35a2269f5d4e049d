"""Check the inputs of a run against the interface of its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.runtime.interface import Interface, Port, Value
from smelt.runtime.random_keys import key_data

Run = Callable[..., Sequence[Value]]


def feed(interface: Interface, inputs: Sequence[Value]) -> dict[str, Value]:
    """``inputs`` by name, checked against the interface, with defaults for what is left out.

    Raises UsageError E632 on a wrong count, element type, rank or size.
    """
    expected = len(interface.inputs)
    if len(inputs) != expected:
        raise UsageError("E632", f"the model takes {expected} inputs, {len(inputs)} were given")
    fed: dict[str, Value] = {}
    for port, given in zip(interface.inputs, inputs, strict=True):
        value = given
        if value is None:
            if not _may_be_left_out(port):
                raise UsageError("E632", f"input {port.name!r} has no default and was left out")
            fed[port.name] = port.default.numpy() if port.default is not None else None
            continue
        if not isinstance(value, list | dict):
            value = np.asarray(key_data(value))
            _check(port, value)
        fed[port.name] = value
    return fed


def leaving_out(interface: Interface, run: Run) -> Run:
    """``run``, called with what callers must give alone, or without its last inputs.

    ``run`` takes None for an input that has a default, or is optional, and is left out. Where there
    is none such, it is ``run`` itself.
    """
    ports = interface.inputs
    required = [i for i, port in enumerate(ports) if not _may_be_left_out(port)]
    if len(required) == len(ports):
        return run
    first = required[-1] + 1 if required else 0

    def on_some(*inputs: Value) -> Sequence[Value]:
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
    return port.default is not None or port.kind == "optional"


def _check(port: Port, array: np.ndarray) -> None:
    given = f"{array.dtype}[{','.join(map(str, array.shape))}]"
    mistake = UsageError("E632", f"input {port.name!r} is {port}, but {given} was given")
    if port.dtype is not None and port.kind == "tensor":
        text = port.dtype == ir.DataType.STRING
        if (array.dtype.kind not in "OUST") if text else (array.dtype != port.dtype.numpy()):
            raise mistake
    if port.shape is None or port.kind != "tensor":
        return
    if array.ndim != len(port.shape):
        raise mistake
    pairs = zip(port.shape, array.shape, strict=True)
    if any(isinstance(dim, int) and dim != size for dim, size in pairs):
        raise mistake
