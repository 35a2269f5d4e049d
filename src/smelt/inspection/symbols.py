"""The symbolic dims of a model, and where each comes from."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir.dims import symbols_of
from smelt.runtime.interface import interface_of


@dataclass
class Symbol:
    """A symbolic dim: the ``inputs`` that give it its size and the ``outputs`` that have it.

    Both are spelled ``x[0]``, with the dim behind it where that is an expression. Without inputs,
    the size depends on values, as that of NonZero does, or nobody knows it.
    """

    name: str
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def symbols_in(model: ir.Model) -> list[Symbol]:
    """Each symbol of the interface once, in order; dims without a name go by input and axis."""
    found: dict[str, Symbol] = {}
    interface = interface_of(model)
    for port in interface.inputs:
        for name, place in _places(port.name, port.shape):
            found.setdefault(name, Symbol(name)).inputs.append(place)
    for port in interface.outputs:
        for name, place in _places(port.name, port.shape):
            found.setdefault(name, Symbol(name)).outputs.append(place)
    return list(found.values())


def _places(port: str, shape: tuple[int | ir.SymbolicDim, ...] | None) -> list[tuple[str, str]]:
    places = []
    for axis, dim in enumerate(shape or ()):
        for name in sorted(symbols_of(dim)):
            text = f"{port}[{axis}]"
            places.append((name, text if str(dim) == name else f"{text} = {dim}"))
    return places
